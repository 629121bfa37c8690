/* SPDX-License-Identifier: Apache-2.0 */
/* Files that tools of the host make use of: which are, wherever they lie, and which only look so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "export/host_tools.h"
#include "wire/files.h"
#include "base/guards.h"

static void known_files_are_found_at_any_depth(void **state)
{
    static const char *const paths[] = {
        ".git/hooks/pre-commit",
        "repo/.git/hooks/post-checkout",
        ".git/config",
        "a/b/.git/config.worktree",
        ".git/modules/x/config",
        ".gitmodules",
        "x/.envrc",
        ".vscode/tasks.json",
        "p/.vscode/deep/er.json",
        ".idea/workspace.xml",
        ".claude/settings.json",
        ".cursor/rules/a.mdc",
        ".mcp.json",
        "CLAUDE.md",
        "sub/AGENTS.md",
        "GEMINI.md",
        ".husky/pre-push",
        ".pre-commit-config.yaml",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".yarn/plugins/a.cjs",
        ".bashrc",
        "home/.zshenv",
        ".profile",
        ".vimrc",
        ".exrc",
        ".nvim.lua",
        ".dir-locals.el",
        ".gdbinit",
        ".devcontainer/devcontainer.json",
        ".devcontainer.json",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "Jenkinsfile",
        "lefthook.yml",
        "lefthook.yaml",
        "mise.toml",
        "bunfig.toml",
        "ansible.cfg",
        "opencode.json",
        "azure-pipelines.yml",
        "project.code-workspace",
        ".ssh/authorized_keys",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        const char *reason = host_tools_reason(paths[i], FILE_REGULAR);

        if (!reason)
            fail_msg("%s was not found", paths[i]);
    }
}

static void case_does_not_hide_them(void **state)
{
    (void)state;
    assert_non_null(host_tools_reason(".GIT/Hooks/pre-commit", FILE_REGULAR));
    assert_non_null(host_tools_reason("claude.MD", FILE_REGULAR));
    assert_non_null(host_tools_reason("X.Code-Workspace", FILE_REGULAR));
    assert_non_null(host_tools_reason("jenkinsfile", FILE_REGULAR));
}

static void files_of_other_names_pass(void **state)
{
    static const char *const paths[] = {
        "report.pdf",
        "git/hooks/pre-commit",
        "hooks/pre-commit",
        ".gitignore",
        ".gitattributes",
        ".git/HEAD",
        ".git/objects/12/34",
        "envrc",
        ".envrc.md",
        "x.envrc",
        "vscode/settings.json",
        "docs/CLAUDE.md.txt",
        "AGENTS.md/x",
        "npmrc",
        "config",
        ".config",
        ".github/ISSUE.md",
        "a.code-workspace.bak",
        "mise",
        "1/2/3",
        "",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (host_tools_reason(paths[i], FILE_REGULAR))
            fail_msg("%s was taken for one", paths[i]);
}

static void a_folder_does_nothing_by_itself(void **state)
{
    (void)state;
    assert_null(host_tools_reason(".git", FILE_FOLDER));
    assert_null(host_tools_reason(".git/hooks", FILE_FOLDER));
    assert_null(host_tools_reason(".vscode", FILE_FOLDER));
    assert_null(host_tools_reason(".envrc", FILE_FOLDER));
    assert_non_null(host_tools_reason(".vscode/deep", FILE_LINK));
}

static void a_link_in_the_place_of_a_folder_leads_to_what_is_in_it(void **state)
{
    (void)state;
    assert_non_null(host_tools_reason(".git", FILE_LINK));
    assert_non_null(host_tools_reason("a/.git", FILE_REGULAR)); /* says where the repository is */
    assert_non_null(host_tools_reason(".git/hooks", FILE_LINK));
    assert_non_null(host_tools_reason(".github", FILE_LINK));
    assert_non_null(host_tools_reason(".vscode", FILE_LINK));
    assert_null(host_tools_reason("github", FILE_LINK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_files_are_found_at_any_depth),
        cmocka_unit_test(case_does_not_hide_them),
        cmocka_unit_test(files_of_other_names_pass),
        cmocka_unit_test(a_folder_does_nothing_by_itself),
        cmocka_unit_test(a_link_in_the_place_of_a_folder_leads_to_what_is_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
