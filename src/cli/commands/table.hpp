// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.hpp"

#include <memory>

/// One maker per command, defined in the command's own file under this folder:
///     std::unique_ptr<Command> make_check_config();
namespace kb::cli {

std::unique_ptr<Command> make_abi_diff();
std::unique_ptr<Command> make_build();
std::unique_ptr<Command> make_check_abi();
std::unique_ptr<Command> make_check_builds();
std::unique_ptr<Command> make_check_config();
std::unique_ptr<Command> make_check_ops();
std::unique_ptr<Command> make_update_build();
std::unique_ptr<Command> make_confine();
std::unique_ptr<Command> make_explain();
std::unique_ptr<Command> make_hash();
std::unique_ptr<Command> make_init();
std::unique_ptr<Command> make_sign();
std::unique_ptr<Command> make_create_pyproject();
std::unique_ptr<Command> make_clean_pyproject();
std::unique_ptr<Command> make_generate();
std::unique_ptr<Command> make_fill_card();
std::unique_ptr<Command> make_list_variants();
std::unique_ptr<Command> make_verify();
std::unique_ptr<Command> make_testshell();
std::unique_ptr<Command> make_upload();
std::unique_ptr<Command> make_registry_init();
std::unique_ptr<Command> make_registry_serve();
std::unique_ptr<Command> make_registry_token_create();
std::unique_ptr<Command> make_registry_token_list();
std::unique_ptr<Command> make_registry_token_revoke();
std::unique_ptr<Command> make_registry_gc();
std::unique_ptr<Command> make_registry_export();
std::unique_ptr<Command> make_registry_import();
std::unique_ptr<Command> make_registry_mirror();
std::unique_ptr<Command> make_registry_fsck();
std::unique_ptr<Command> make_doctor();
std::unique_ptr<Command> make_fetch();
std::unique_ptr<Command> make_lock();
std::unique_ptr<Command> make_store_gc();
std::unique_ptr<Command> make_store_path();
std::unique_ptr<Command> make_store_verify();

} // namespace kb::cli
