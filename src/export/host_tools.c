/* SPDX-License-Identifier: Apache-2.0 */
/* The table of files that tools of the host run or obey, and how paths are held against it. */
#include "export/host_tools.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "wire/files.h"
#include "base/guards.h"

/* Behind a "/" at its end everything is meant that lies in the folder, and a link or file in its
 * place. '*' is the only wildcard, and stays within a part. */
struct tool_file {
    const char *pattern;
    const char *reason;
};

#define GIT_HOOKS   "git runs the hooks in it"
#define GIT_CONFIG  "git runs programs that its configuration names"
#define GIT_PLACE   "git takes it for the place of a repository, with hooks and configuration"
#define GIT_MODULES "git fetches what it names"
#define HOOKS       "hooks of a repository are run from it"
#define EDITOR      "an editor obeys it when the folder is opened"
#define AGENT       "coding agents take orders from it"
#define SERVERS     "coding agents start the servers that it names"
#define WORKFLOW    "a build service runs it"
#define CONTAINER   "an editor builds and starts what it describes"
#define PACKAGES    "a package manager obeys it"
#define SHELL       "a shell runs it when it starts"
#define DIRECTORY   "a shell runs it when the folder is entered"
#define SESSION     "it is run or obeyed when somebody logs in"
#define DEBUGGER    "a debugger or interpreter runs it when it starts"
#define PROGRAM     "a program obeys it when it is started there"

static const struct tool_file tool_files[] = {
    {".git/hooks/", GIT_HOOKS},
    {".git/config", GIT_CONFIG},
    {".git/config.worktree", GIT_CONFIG},
    {".git/info/attributes", GIT_CONFIG},
    {".git/modules/", GIT_CONFIG},
    {".git/worktrees/", GIT_CONFIG},
    {".git/commondir", GIT_PLACE},
    {".gitmodules", GIT_MODULES},
    {".gitconfig", GIT_CONFIG},
    {".config/git/", GIT_CONFIG},
    {".hg/hgrc", "Mercurial runs the hooks that it names"},
    {".husky/", HOOKS},
    {".githooks/", HOOKS},
    {".pre-commit-config.yaml", HOOKS},
    {".pre-commit-hooks.yaml", HOOKS},
    {"lefthook.y*ml", HOOKS},
    {".lefthook.y*ml", HOOKS},
    {"lefthook-local.y*ml", HOOKS},

    {".vscode/", EDITOR},
    {".idea/", EDITOR},
    {".fleet/", EDITOR},
    {".zed/", EDITOR},
    {".vs/", EDITOR},
    {".vimrc", EDITOR},
    {".gvimrc", EDITOR},
    {".lvimrc", EDITOR},
    {".exrc", EDITOR},
    {".nexrc", EDITOR},
    {".nvimrc", EDITOR},
    {".nvim.lua", EDITOR},
    {".vim/", EDITOR},
    {".config/nvim/", EDITOR},
    {".emacs", EDITOR},
    {".emacs.d/", EDITOR},
    {".dir-locals.el", EDITOR},
    {".dir-locals-2.el", EDITOR},

    {".mcp.json", SERVERS},
    {"mcp.json", SERVERS},
    {".claude/", AGENT},
    {"CLAUDE.md", AGENT},
    {"CLAUDE.local.md", AGENT},
    {"AGENTS.md", AGENT},
    {"AGENTS.override.md", AGENT},
    {"AGENT.md", AGENT},
    {"GEMINI.md", AGENT},
    {".agents/", AGENT},
    {".codex/", AGENT},
    {".gemini/", AGENT},
    {".cursor/", AGENT},
    {".cursorrules", AGENT},
    {".windsurf/", AGENT},
    {".windsurfrules", AGENT},
    {".clinerules/", AGENT},
    {".roo/", AGENT},
    {".roorules", AGENT},
    {".kiro/", AGENT},
    {".junie/", AGENT},
    {".amazonq/", AGENT},
    {".continue/", AGENT},
    {".opencode/", AGENT},
    {"opencode.json", AGENT},
    {".goosehints", AGENT},
    {".aider.conf.yml", AGENT},
    {".github/copilot-instructions.md", AGENT},
    {".github/instructions/", AGENT},
    {".github/prompts/", AGENT},

    {".github/workflows/", WORKFLOW},
    {".github/actions/", WORKFLOW},
    {".gitea/workflows/", WORKFLOW},
    {".forgejo/workflows/", WORKFLOW},
    {".gitlab-ci.yml", WORKFLOW},
    {".circleci/", WORKFLOW},
    {".buildkite/", WORKFLOW},
    {".woodpecker/", WORKFLOW},
    {".woodpecker.y*ml", WORKFLOW},
    {".drone.yml", WORKFLOW},
    {".travis.yml", WORKFLOW},
    {"azure-pipelines.yml", WORKFLOW},
    {"bitbucket-pipelines.yml", WORKFLOW},
    {"Jenkinsfile", WORKFLOW},
    {".devcontainer/", CONTAINER},
    {".devcontainer.json", CONTAINER},

    {".npmrc", PACKAGES},
    {".yarnrc", PACKAGES},
    {".yarnrc.y*ml", PACKAGES},
    {".yarn/", PACKAGES},
    {".pnp.cjs", PACKAGES},
    {".pnpmfile.cjs", PACKAGES},
    {"bunfig.toml", PACKAGES},
    {".bunfig.toml", PACKAGES},
    {".cargo/", PACKAGES},
    {".bundle/", PACKAGES},
    {".mvn/", PACKAGES},
    {".condarc", PACKAGES},
    {".gemrc", PACKAGES},
    {".pypirc", PACKAGES},

    {".envrc", DIRECTORY},
    {"mise.toml", DIRECTORY},
    {".mise.toml", DIRECTORY},
    {".autoenv.zsh", DIRECTORY},
    {".bashrc", SHELL},
    {".bash_profile", SHELL},
    {".bash_login", SHELL},
    {".bash_logout", SHELL},
    {".bash_aliases", SHELL},
    {".profile", SHELL},
    {".zshrc", SHELL},
    {".zshenv", SHELL},
    {".zprofile", SHELL},
    {".zlogin", SHELL},
    {".zlogout", SHELL},
    {".kshrc", SHELL},
    {".mkshrc", SHELL},
    {".cshrc", SHELL},
    {".tcshrc", SHELL},
    {".login", SHELL},
    {".logout", SHELL},
    {".inputrc", SHELL},
    {".config/fish/", SHELL},
    {".ssh/", SESSION},
    {".gnupg/", SESSION},
    {".pam_environment", SESSION},
    {".xinitrc", SESSION},
    {".xsession", SESSION},
    {".xsessionrc", SESSION},
    {".xprofile", SESSION},
    {".forward", SESSION},
    {".config/autostart/", SESSION},
    {".config/systemd/", SESSION},
    {".config/environment.d/", SESSION},
    {".gdbinit", DEBUGGER},
    {".gdbearlyinit", DEBUGGER},
    {".lldbinit", DEBUGGER},
    {".pdbrc", DEBUGGER},
    {".ipython/", DEBUGGER},
    {".jupyter/", DEBUGGER},
    {".Rprofile", DEBUGGER},
    {".irbrc", DEBUGGER},
    {".pryrc", DEBUGGER},
    {".psqlrc", DEBUGGER},
    {".sqliterc", DEBUGGER},
    {".tmux.conf", PROGRAM},
    {".screenrc", PROGRAM},
    {".curlrc", PROGRAM},
    {".wgetrc", PROGRAM},
    {"ansible.cfg", PROGRAM},
    {".ansible.cfg", PROGRAM},
    {".terraformrc", PROGRAM},
};

static size_t part_length(const char *s)
{
    return strcspn(s, "/");
}

/* Whether @path begins with one part that is that of @pattern. */
static bool part_matches(const char *pattern, size_t n, const char *path, size_t len)
{
    char mine[64], theirs[256];

    if (!memchr(pattern, '*', n))
        return n == len && strncasecmp(pattern, path, n) == 0;
    if (n >= sizeof mine || len >= sizeof theirs)
        return false;
    memcpy(mine, pattern, n);
    memcpy(theirs, path, len);
    mine[n] = theirs[len] = '\0';
    return fnmatch(mine, theirs, FNM_CASEFOLD | FNM_NOESCAPE) == 0;
}

/* Whether @pattern matches @path from its beginning on. */
static bool matches_here(const char *pattern, const char *path, uint32_t kind)
{
    for (;;) {
        size_t n = part_length(pattern), len = part_length(path);

        if (!part_matches(pattern, n, path, len))
            return false;
        pattern += n;
        path += len;
        if (strcmp(pattern, "/") == 0)
            return *path == '/' || kind != FILE_FOLDER;
        if (*pattern == '\0')
            return *path == '\0' && kind != FILE_FOLDER;
        if (*path == '\0') /* a link may lead to a folder in which the rest is found */
            return kind == FILE_LINK;
        pattern++;
        path++;
    }
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Names of which only the end counts. */
static bool is_workspace(const char *path)
{
    static const char end[] = ".code-workspace";
    size_t n = strlen(path);

    return n >= sizeof end - 1 && strcasecmp(path + n - (sizeof end - 1), end) == 0;
}

/* A file in the place of ".git" says where the repository is; a link there leads to it. */
static bool is_git_place(const char *path)
{
    return strcasecmp(last_part(path), ".git") == 0;
}

/* The first bytes that patterns have, in lower case: nearly every part is ruled out by its own. */
static const char first_bytes[] = ".abcgjlmo";

const char *host_tools_reason(const char *path, uint32_t kind)
{
    if (kind != FILE_FOLDER && is_git_place(path))
        return GIT_PLACE;
    if (kind != FILE_FOLDER && is_workspace(path))
        return EDITOR;
    for (const char *part = path; *part; part += part_length(part), part += *part == '/') {
        if (*part == '/' || !strchr(first_bytes, *part | 0x20))
            continue;
        for (size_t i = 0; i < ARRAY_SIZE(tool_files); i++)
            if ((tool_files[i].pattern[0] | 0x20) == (*part | 0x20) &&
                matches_here(tool_files[i].pattern, part, kind))
                return tool_files[i].reason;
    }
    return NULL;
}
