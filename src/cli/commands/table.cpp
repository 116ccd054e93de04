// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/table.hpp"

namespace kb::cli {

std::vector<std::unique_ptr<Command>> make_commands() {
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(make_init());
    commands.push_back(make_check_config());
    commands.push_back(make_update_build());
    commands.push_back(make_list_variants());
    commands.push_back(make_explain());
    commands.push_back(make_build());
    commands.push_back(make_check_abi());
    commands.push_back(make_check_builds());
    commands.push_back(make_check_ops());
    commands.push_back(make_abi_diff());
    commands.push_back(make_hash());
    commands.push_back(make_sign());
    commands.push_back(make_verify());
    commands.push_back(make_upload());
    commands.push_back(make_testshell());
    commands.push_back(make_doctor());
    commands.push_back(make_lock());
    commands.push_back(make_fetch());
    commands.push_back(make_store_path());
    commands.push_back(make_store_verify());
    commands.push_back(make_store_gc());
    commands.push_back(make_create_pyproject());
    commands.push_back(make_generate());
    commands.push_back(make_clean_pyproject());
    commands.push_back(make_fill_card());
    commands.push_back(make_registry_init());
    commands.push_back(make_registry_serve());
    commands.push_back(make_registry_token_create());
    commands.push_back(make_registry_token_list());
    commands.push_back(make_registry_token_revoke());
    commands.push_back(make_registry_gc());
    commands.push_back(make_registry_export());
    commands.push_back(make_registry_import());
    commands.push_back(make_registry_mirror());
    commands.push_back(make_registry_fsck());
    commands.push_back(make_confine());
    return commands;
}

} // namespace kb::cli
