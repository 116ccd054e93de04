// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "binfmt/shared_object.hpp"
#include "build/stub_library.hpp"
#include "sys/file_system.hpp"
#include "sys/process.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kb::build {

/// Does torch in the shell say that it has CUDA? `cpu` sets torch.version.cuda to None when torch
/// is imported, so that a kernel's CPU variant is chosen.
enum class TestAs : std::uint8_t { as_is, cpu };

/// One library of torch, with what is needed to know what it lacks.
struct TorchLibrary {
    std::string name{}; ///< File name.
    binfmt::SharedObject facts{};
};

struct StubInput {
    std::span<const TorchLibrary> libraries{};
    /// Foreign libraries that stay real ...
    std::set<std::string> real{};
    /// ... and what they define.
    std::set<std::string> defined{};
    StubMachine machine = StubMachine::x86_64;
};

/// PURE. Libraries that torch needs, does not bring and that are not real, each with the functions
/// that torch takes from it. A versioned import goes to the library that it names; an unversioned
/// one that nobody defines to every missing library that its importer needs (torch has unversioned
/// imports of the C++ runtime, which a stub must not catch). Python's own symbols are left out.
[[nodiscard]] std::vector<StubLibrary> plan_stubs(const StubInput& input);

/// Names that the libraries need and do not bring.
[[nodiscard]] std::set<std::string> foreign_libraries(std::span<const TorchLibrary> libraries);

/// Which foreign libraries stay real, and where stubs stand in LD_LIBRARY_PATH.
struct StubChoice {
    std::set<std::string> real{};
    /// Libraries to replace, sorted; empty when torch loads as it is.
    std::vector<std::string> stubbed{};
    /// Before or behind what LD_LIBRARY_PATH holds.
    bool first = false;
};

/// PURE. `found` are the foreign libraries that lie on this machine. All there (the driver's
/// libcuda.so.1 apart, which torch loads late): no stubs. No driver: every GPU library is a stub,
/// also those of an installed toolkit, whose real halves crash over stub ones. A driver: only what
/// is missing.
[[nodiscard]] StubChoice choose_stubs(const std::set<std::string>& foreign,
                                      const std::set<std::string>& found);

struct TestShellRequest {
    TestAs as = TestAs::as_is;
    /// torch's package directory; empty: that of `python`.
    sys::Path torch{};
    /// Program whose torch is meant when `torch` is empty.
    std::string python = "python3";
    /// Folder of our own for stubs; they are made once for each torch.
    sys::Path cache{};
};

struct TestShell {
    sys::Path torch{};
    /// Empty when nothing is missing on this machine.
    sys::Path stubs{};
    std::vector<std::string> stubbed{};
    /// LD_LIBRARY_PATH and PYTHONPATH as they must be; every other variable stays.
    sys::EnvironmentMap changes{};
};

/// Finds torch, makes what is missing and says which environment loads it. `not_found` with the
/// command that installs torch when there is none.
[[nodiscard]] Result<TestShell> prepare_test_shell(const TestShellRequest& request,
                                                   const sys::EnvironmentMap& environment,
                                                   sys::FileSystem& fs,
                                                   sys::ProcessRunner& processes);

/// Puts `folder` first in the shell's PYTHONPATH.
void put_on_python_path(TestShell& shell,
                        const sys::EnvironmentMap& environment,
                        const sys::Path& folder);

/// The Python start file of TestAs::cpu.
[[nodiscard]] std::string_view cpu_start_file();

/// Becomes the program, with this environment; returns only when that fails.
[[nodiscard]] Error replace_process(const std::vector<std::string>& argv,
                                    const sys::EnvironmentMap& environment);

} // namespace kb::build
