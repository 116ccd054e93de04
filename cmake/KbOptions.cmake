# SPDX-License-Identifier: Apache-2.0
# Flags of our own targets, in one INTERFACE target that is linked PRIVATE; packages are SYSTEM.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_library(kb_options INTERFACE)
target_compile_options(kb_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wswitch-enum -Wold-style-cast
  -Woverloaded-virtual -Wnull-dereference -fstack-protector-strong -fPIE
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(kb_options INTERFACE -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wuseless-cast)
endif()
target_compile_definitions(kb_options INTERFACE _GLIBCXX_ASSERTIONS KB_VERSION="${PROJECT_VERSION}")
target_link_options(kb_options INTERFACE -pie -Wl,-z,relro,-z,now)
if(KB_DEV_MODE)
  target_compile_options(kb_options INTERFACE -Werror)
endif()
if(KB_SANITIZE)
  target_compile_options(kb_options INTERFACE -fsanitize=${KB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(kb_options INTERFACE -fsanitize=${KB_SANITIZE})
  # g++ 12 reports false null dereferences and uninitialised uses in instrumented code.
  target_compile_options(kb_options INTERFACE -Wno-null-dereference -Wno-maybe-uninitialized)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  # g++ 12 at -O3 reports null dereferences in the side of a variant that was checked not to be there.
  target_compile_options(kb_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  # g++ 12 reports false overlaps and overflows of its own std::string in optimised code (PR105651).
  target_compile_options(kb_options INTERFACE -Wno-null-dereference -Wno-restrict -Wno-stringop-overflow)
endif()

# Every package comes from the system: nothing is downloaded at configure time.
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(LibArchive REQUIRED)
find_package(SQLite3 REQUIRED)
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW) # Boost's own package file; older CMake has only its finder
endif()
find_package(Boost REQUIRED)
find_package(Threads REQUIRED)

function(kb_print_summary)
  message(STATUS "kernel-builder ${PROJECT_VERSION}: build type ${CMAKE_BUILD_TYPE}, sanitizers '${KB_SANITIZE}', tests ${KB_BUILD_TESTS}")
  message(STATUS "  fmt ${fmt_VERSION} | CLI11 ${CLI11_VERSION} | toml++ ${tomlplusplus_VERSION} | nlohmann-json ${nlohmann_json_VERSION} | libcurl ${CURL_VERSION_STRING}")
  message(STATUS "  OpenSSL ${OPENSSL_VERSION} | libarchive ${LibArchive_VERSION} | SQLite ${SQLite3_VERSION} | Boost ${Boost_VERSION_STRING}")
endfunction()
