/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every text that the toolset shows to a model, in one place: whoever changes a word here changes
 * how models behave, and cached prompts, so TEXTS_VERSION counts such changes. They are macros, so
 * that the compiler checks each against its arguments. What they hold: facts and what to do next,
 * in as few words as carry them.
 *
 * What went wrong below the toolset is said there (core/file_error.h, wire/tool_arguments.h) and
 * comes behind TEXT_FAILED or TEXT_ARGUMENTS_REFUSED.
 *
 * "TOOL" in a comment is a tool's name with its prefix, "SIZE" is of shown_size(), "PATH" of
 * shown_path(), "SECONDS" of shown_number().
 */
#pragma once

#include <inttypes.h>

/*
 * What changed:
 * 4: when little life is left is told below five minutes or a tenth of the life (before: two
 *    minutes and a fifth); a timeout that was shorter than was asked for says so; so does output
 * that a ceiling of the whole run cuts.
 */
#define TEXTS_VERSION 4

/* --- The fixed part of the descriptions; no network and no names of other tools in them --- */

#define TEXT_RUN_COMMAND_TITLE "Run a command"
#define TEXT_RUN_COMMAND                                                                           \
    "Runs a shell command in an isolated sandbox and returns what it wrote. Pipes, redirection, "  \
    "&& and globs work. A command that fails is reported by its exit code and is no error of "     \
    "this tool: read its stderr, mend the command and try again. The sandbox is a machine of its " \
    "own, apart from the program that you run in: it has none of that program's connections, "     \
    "credentials, environment variables or files. Each call starts a new shell with empty "        \
    "standard input: files stay from call to call, shell variables and cd do not. Relative paths " \
    "start at the working directory, which pwd shows."
#define TEXT_RUN_COMMAND_COMMAND "The shell command to run."
#define TEXT_RUN_COMMAND_TIMEOUT                                                                   \
    "Most seconds to wait for the command, which is ended after them. Left out or null: the "      \
    "configured default."

#define TEXT_READ_FILE_TITLE "Read a file"
#define TEXT_READ_FILE                                                                             \
    "Reads a text file in the sandbox. Of a long file only a part is returned, and its last line " \
    "then names the offset to read on with. Lines are numbered as grep -n does. Relative paths "   \
    "start at the working directory."
#define TEXT_READ_FILE_BYTES  "An image, or another file that is no text, is returned as it is."
#define TEXT_READ_FILE_PATH   "Path of the file in the sandbox."
#define TEXT_READ_FILE_OFFSET "First line to return, counted from 1. Left out or null: 1."
#define TEXT_READ_FILE_LIMIT                                                                       \
    "Most lines to return. Left out or null: as many as the output limit takes."

#define TEXT_WRITE_FILE_TITLE "Write a file"
#define TEXT_WRITE_FILE                                                                            \
    "Writes a text file in the sandbox, as UTF-8. Missing parent directories are made, and a "     \
    "file that exists is replaced as a whole. Relative paths start at the working directory."
#define TEXT_WRITE_FILE_PATH    "Path of the file in the sandbox."
#define TEXT_WRITE_FILE_CONTENT "The whole text of the file."

#define TEXT_LIST_DIRECTORY_TITLE "List a directory"
#define TEXT_LIST_DIRECTORY                                                                        \
    "Lists what a directory in the sandbox holds, hidden files too: one name on a line, sorted, "  \
    "a directory with a / behind its name."
#define TEXT_LIST_DIRECTORY_PATH                                                                   \
    "Path of the directory in the sandbox. Left out or empty: the working directory."

/* Those that are asked for (toolset.tools). */

#define TEXT_EDIT_FILE_TITLE "Edit a file"
#define TEXT_EDIT_FILE                                                                             \
    "Replaces one piece of a text file in the sandbox. old_text has to occur in the file exactly " \
    "once, character for character, indentation and line ends included; otherwise nothing is "     \
    "changed and the answer says why. Relative paths start at the working directory."
#define TEXT_EDIT_FILE_PATH "Path of the file in the sandbox."
#define TEXT_EDIT_FILE_OLD                                                                         \
    "The text to replace, with enough around it to occur only once in the file."
#define TEXT_EDIT_FILE_NEW "The text to put in its place; empty to delete."

#define TEXT_SEARCH_FILES_TITLE "Search files"
#define TEXT_SEARCH_FILES                                                                          \
    "Searches the files below a directory in the sandbox, by name, by text, or by both. A match "  \
    "of text is returned as PATH:LINE: and the line, a match of names alone as PATH. Hidden "      \
    "files are searched too, binary files are not, and symbolic links are not followed. What is "  \
    "returned is bounded, and the last line says when there is more."
#define TEXT_SEARCH_FILES_TEXT                                                                     \
    "Text that a line has to contain, taken as it is and not as a pattern. Left out or empty: "    \
    "files are found by name alone."
#define TEXT_SEARCH_FILES_NAME                                                                     \
    "Pattern for the name of a file, without its directory: * stands for any characters, ? for "   \
    "one, [a-z] for one of these, as in *.py. Left out or empty: every file."
#define TEXT_SEARCH_FILES_PATH                                                                     \
    "Path of the directory in the sandbox. Left out or empty: the working directory."

#define TEXT_START_PROCESS_TITLE "Start a background process"
#define TEXT_START_PROCESS                                                                         \
    "Starts a shell command in the sandbox that goes on in the background, such as a server, and " \
    "returns its number at once. What it writes is kept and can be read by that number. It has "   \
    "empty standard input, and runs until it ends, is stopped, or the sandbox ends."
#define TEXT_START_PROCESS_COMMAND "The shell command to run."

#define TEXT_PROCESS_OUTPUT_TITLE "Read a background process"
#define TEXT_PROCESS_OUTPUT                                                                        \
    "Returns what a background process has written since this was last asked, and whether it "     \
    "still runs or how it ended."
#define TEXT_PROCESS_OUTPUT_PROCESS "Number of the process."
#define TEXT_PROCESS_OUTPUT_WAIT                                                                   \
    "Most seconds to wait until there is something new or it has ended; other calls wait "         \
    "meanwhile. Left out or null: no waiting."

#define TEXT_STOP_PROCESS_TITLE "Stop a background process"
#define TEXT_STOP_PROCESS                                                                          \
    "Ends a background process with everything that it started: it is asked to, and after two "    \
    "seconds it is killed. Returns what it wrote last and how it ended."
#define TEXT_STOP_PROCESS_PROCESS "Number of the process."

#define TEXT_PUBLISH_EXPORTS_TITLE "Publish the results"
#define TEXT_PUBLISH_EXPORTS                                                                       \
    "Publishes now, as they are, the files that this run has promised, at the places that its "    \
    "owner has chosen, all of them or none. Call it when they are complete; a later call "         \
    "publishes them anew."

/* --- What is added to descriptions, each a paragraph or a sentence of one --- */

#define TEXT_PURPOSE "Purpose of this sandbox: %s" /* in front of each, a paragraph of its own */

/* --- What is added to the description of run_command, each a paragraph or a sentence of one --- */

#define TEXT_WRITE_HINT                                                                            \
    "To write a file of several lines, %s is surer than quoting its text here." /* TOOL */

#define TEXT_NETWORK_NONE                                                                          \
    "Network: none. No address can be reached, DNS included, so installing or downloading "        \
    "anything fails, and trying again does not help. Use what is installed here."
#define TEXT_NETWORK_NONE_BUT_NAMES                                                                \
    "Network: none. No address can be reached, even where a name resolves, so installing or "      \
    "downloading anything fails, and trying again does not help. Use what is installed here."
#define TEXT_NETWORK_OPEN "Network: outbound access to public addresses exists."
#define TEXT_NETWORK_OPEN_REST                                                                     \
    "Other addresses are refused at once, and trying again does not help."
#define TEXT_NETWORK_PRIVATE                                                                       \
    "Of private and other special addresses these ranges can be reached: %s." /* list */
#define TEXT_NETWORK_UNKNOWN                                                                       \
    "Network: whatever the creator of the sandbox allowed, which is not recorded. Test what you "  \
    "need before you rely on it."

/* With a list of hosts; the sentences in this order, those that apply. */
#define TEXT_NETWORK_HOSTS     "Network: only these hosts can be reached, and by name: %s." /* list */
#define TEXT_NETWORK_ALL_HTTPS "They take HTTPS on port 443 only."
#define TEXT_NETWORK_SOME_HTTPS                                                                    \
    "A host without a port behind its name takes HTTPS on port 443 only."
#define TEXT_NETWORK_HTTP     "A host with :80 takes plain HTTP."
#define TEXT_NETWORK_TCP      "A host with another port takes TCP on that port."
#define TEXT_NETWORK_WILDCARD "*.NAME stands for any name below NAME, and not for NAME itself."

/* With a list of ranges: alone, or behind the hosts. */
#define TEXT_NETWORK_RANGES                                                                        \
    "Network: only these address ranges can be reached, on any port: %s." /* list */
#define TEXT_NETWORK_AND_RANGES                                                                    \
    "These address ranges can be reached too, on any port: %s." /* list */

/* What fails. Of plain HTTP only what the lists leave no other way for. Those that end in AT_ONCE
 * are of the local backend; of others it is not known. */
#define TEXT_NETWORK_REST "Everything else fails, and trying again does not help."
#define TEXT_NETWORK_REST_AT_ONCE                                                                  \
    "Everything else is refused at once, and trying again does not help."
#define TEXT_NETWORK_NO_HTTP                                                                       \
    "Everything else fails, plain HTTP to any host included, and trying again does not help."
#define TEXT_NETWORK_NO_HTTP_AT_ONCE                                                               \
    "Everything else is refused at once, plain HTTP to any host included, and trying again does "  \
    "not help."
#define TEXT_NETWORK_HOSTS_NO_UDP        "Hosts take no UDP."
#define TEXT_NETWORK_HOSTS_NO_UDP_RANGES "Hosts take no UDP; the ranges do."
#define TEXT_NETWORK_HOSTS_NO_HTTP       "Plain HTTP to the hosts fails; the ranges take any port."
#define TEXT_NETWORK_HOSTS_SOME_HTTP     "Plain HTTP to a host that is listed without :80 fails."

/* Names that are not listed. */
#define TEXT_NAMES_OTHERS_FAIL "Names that are not listed do not resolve."
#define TEXT_NAMES_ALL_FAIL    "No host name resolves; use addresses."
#define TEXT_NAMES_OTHERS_MAY                                                                      \
    "Other names may resolve all the same, but only what is listed here answers."
#define TEXT_NAMES_ALL_MAY                                                                         \
    "Host names may still resolve, but only addresses in these ranges answer."

#define TEXT_LIST_SEPARATOR ", "
#define TEXT_LIST_REST      " and %zu more"
enum { TEXT_LIST_ENTRIES_MAX = 40 };

#define TEXT_ATTACHED_SHORT "This sandbox was set up by an earlier task."
#define TEXT_ATTACHED                                                                              \
    "This sandbox was set up by an earlier task, and what it left is here. Files stay when this "  \
    "run ends, for a later task to collect."
#define TEXT_LIFE_UNKNOWN "How long the sandbox will live is not known."
#define TEXT_LIFE_NONE    "The sandbox has no time limit of its own."
#define TEXT_LIFE_SHORT   "The sandbox has less than a minute left: finish up."
#define TEXT_LIFE_ABOUT                                                                            \
    "When this run began, the sandbox had about %" PRId64 " %s left." /* TEXT_MINUTES() */
#define TEXT_MINUTES(n) ((n) == 1 ? "minute" : "minutes")

#define TEXT_EXPORTS                                                                               \
    "When this run ends, these paths are copied out and everything else is discarded, so write "   \
    "your results there first: %s." /* list */
#define TEXT_EXPORTS_ATTACHED                                                                      \
    "When this run ends, these paths are copied out, so write your results there first: %s."

/* --- Results of run_command --- */

#define TEXT_STDOUT    "[stdout]" /* a line of its own, the text below */
#define TEXT_STDERR    "[stderr]"
#define TEXT_NO_OUTPUT "(no output)"

/* The notes of its last line, a space between two. */
#define TEXT_NOTE_EXIT      "[exit code: %d]"
#define TEXT_NOTE_TIMED_OUT "[timed out after %ss]" /* SECONDS */
#define TEXT_NOTE_TIMED_OUT_SHORT                                                                  \
    "[that is less than the %ss it was to have: no more could be given]" /* SECONDS */
#define TEXT_NOTE_MEMORY "[ended because memory ran out]"
#define TEXT_NOTE_KILLED "[ended from outside]"
#define TEXT_NOTE_HELD                                                                             \
    "[a background process still holds the output; what it writes from now on is not shown]"
#define TEXT_NOTE_REFUSED                                                                          \
    "[refused by the network policy: %s%s. Trying again does not help.]" /* list, rest */
#define TEXT_REFUSED_REST  " and %" PRIu64 " more"
#define TEXT_NOTE_REPLACED "[sandbox was replaced; files from earlier calls are gone]"

/* Below the result of any tool, when little life is left. */
#define TEXT_LITTLE_LIFE_SHORT "[the sandbox has less than a minute left; finish up]"
#define TEXT_LITTLE_LIFE                                                                           \
    "[the sandbox has about %" PRIu64 " %s left; finish what matters]" /* TEXT_MINUTES() */

/* Below the next result of any tool, when somebody has changed the network policy. */
#define TEXT_NOTE_POLICY                                                                           \
    "[the network policy was changed; this can be reached now, and nothing else: %s]" /* list */
#define TEXT_NOTE_POLICY_NONE "[the network policy was changed; nothing can be reached any more]"
#define TEXT_NOTE_POLICY_UNKNOWN                                                                   \
    "[the network policy was changed; test what you need before you rely on it]"

/* Behind the answer of a command whose output was cut by the ceiling of the run: SIZE. */
#define TEXT_NOTE_RUN_OUTPUT                                                                       \
    "[of all output of this session %s may be shown, and that is used up: have commands write to " \
    "files, and read what matters]"

/* The first line of an output that lost its beginning. */
#define TEXT_EARLIER_TRUNCATED "[... earlier output truncated]"

/* --- Results of the other tools --- */

/* The last line of a window; TEXT_LINES() for the words. */
#define TEXT_MORE_LINES           "[... %" PRIu64 " more %s; read on with offset=%" PRIu64 "]"
#define TEXT_MORE_LINES_UNCOUNTED "[... more lines; read on with offset=%" PRIu64 "]"
#define TEXT_LINES(n)             ((n) == 1 ? "line" : "lines")

/* In the place of a window. */
#define TEXT_NO_LINES                                                                              \
    "(no lines at offset %" PRIu64 "; file has %" PRIu64 " %s)" /* TEXT_LINES()                    \
                                                                 */
#define TEXT_WIDE_LINE                                                                             \
    "Line %" PRIu64 " is longer than the output limit of %s. Use %s with a command such as cut, "  \
    "head -c or sed to see a part of it." /* SIZE, TOOL run_command */

/* Where bytes are answered. */
#define TEXT_NO_TEXT "%s is no text: %s, %s." /* PATH, media type, SIZE */

#define TEXT_WROTE "Wrote %" PRIu64 " bytes to %s." /* PATH */

#define TEXT_EMPTY        "(empty)"
#define TEXT_DIRECTORY    "/" /* behind the name of one */
#define TEXT_MORE_ENTRIES     /* TOOL run_command, the number of the first that is not shown */    \
    "[... %zu more %s; to see them, use %s in that directory: LC_ALL=C ls -A | tail -n +%zu]"
#define TEXT_ENTRIES(n) ((n) == 1 ? "entry" : "entries")

/* A line for each; the words in brackets are a SIZE, or TEXT_PUBLISHED_FILES. */
#define TEXT_PUBLISHED       "Published %s (%s) at %s." /* PATH, words, URL */
#define TEXT_PUBLISHED_FILES "%s in %" PRIu64 " %s"     /* SIZE, TEXT_FILES() */
#define TEXT_FILES(n)        ((n) == 1 ? "file" : "files")
#define TEXT_MORE_PUBLISHED  "[... %zu more, published too]"

/* --- Resources: what was published --- */

#define TEXT_RESOURCE "%s of the sandbox, published in this run." /* PATH */
#define TEXT_RESOURCE_FOLDER                                                                       \
    "%s of the sandbox, %" PRIu64 " %s, published in " /* PATH */                                  \
    "this run. Reading it shows its manifest; a file in it is read by "                            \
    "this URI, a / and its path there."
#define TEXT_RESOURCE_TOO_LARGE                                                                    \
    "the resource has %s, which is more than the read limit of %s" /* SIZE, SIZE */
#define TEXT_RESOURCE_TOO_LARGE_REMEDY                                                             \
    "Look at the file in the sandbox, part by part, or where it was published"
#define TEXT_RESOURCE_SECRET                                                                       \
    "the resource is no text, and among its bytes is a secret that is masked in all that is shown"
#define TEXT_RESOURCE_UNREADABLE "the resource cannot be read: %s" /* strerror() */

/* --- What a server says of all its tools, and of calls that it does not pass on --- */

#define TEXT_SERVER                                                                                \
    "These tools act in a disposable sandbox: a machine of its own, which is made when the first " \
    "of them is called and is gone, with everything in it, when this session ends. Calls run one " \
    "after another, in the order in which they were made."
#define TEXT_SERVER_GROUP "A sandbox of its own is behind each of " /* "PREFIX_*: PURPOSE" */
#define TEXT_TOO_MANY_CALLS                                                                        \
    "Too many calls are waiting already. Wait for their answers, then make this call again."
#define TEXT_RENEWED "The next call gets a new, empty sandbox; files of earlier calls are gone."

/* --- Results of edit_file and search_files --- */

#define TEXT_EDITED "Edited %s at line %" PRIu64 "." /* PATH */

/* Followed by those sentences that apply. */
#define TEXT_EDIT_ABSENT "old_text does not occur in %s, so nothing was changed." /* PATH */
#define TEXT_EDIT_APART_CRLF                                                                       \
    " But for the line ends it does at line %" PRIu64 ": in the file they are CRLF (\\r\\n), in "  \
    "old_text LF (\\n)."
#define TEXT_EDIT_APART_LF                                                                         \
    " But for the line ends it does at line %" PRIu64 ": in the file they are LF (\\n), in "       \
    "old_text CRLF (\\r\\n)."
#define TEXT_EDIT_APART_SPACES                                                                     \
    " But for spaces, tabs and line ends it does at line %" PRIu64                                 \
    ": copy it exactly as the file has it."
#define TEXT_EDIT_MASKED                                                                           \
    " *** may stand for a value that is hidden from you, and that cannot be matched: choose text " \
    "without it."
#define TEXT_EDIT_REPLACEMENT                                                                      \
    " U+FFFD may stand for a byte that is not UTF-8, and that cannot be matched: choose text "     \
    "without it."
#define TEXT_EDIT_LOOK " Read the file to see what it holds."

#define TEXT_EDIT_SEVERAL /* PATH, a list of numbers */                                            \
    "old_text occurs %" PRIu64 " times in %s, at %s %s, so nothing was changed. Add what stands "  \
    "around the one that you mean, so that it occurs only once."
#define TEXT_EDIT_EMPTY /* TOOL write_file */                                                      \
    "old_text is empty. Give the text to replace, or write the whole file with %s."
#define TEXT_EDIT_SAME "old_text and new_text are the same, so there is nothing to change."
#define TEXT_EDIT_TOO_LARGE                                                                        \
    "%s has %s, which is more than the read limit of %s. Change it with %s and a command such as " \
    "sed -i." /* PATH, SIZE, SIZE, TOOL run_command */
#define TEXT_EDIT_CHANGED                                                                          \
    "%s was changed by something else meanwhile, so nothing was written. Read it, and edit it "    \
    "again." /* PATH */

#define TEXT_SEARCH_LINE "%s:%" PRIu64 ": " /* name; the line follows */

/* In the place of matches; TEXT_SEARCHED() for the words. */
#define TEXT_SEARCH_NO_TEXT "(no match; %" PRIu64 " text %s searched)"
#define TEXT_SEARCH_NO_NAME "(no match; %" PRIu64 " %s looked at)"
#define TEXT_SEARCHED(n)    ((n) == 1 ? "file was" : "files were")

/* The notes of its last line, a space between two. PATHS is "PATH, PATH and 2 more". */
#define TEXT_SEARCH_MORE "[... more matches; narrow the search by text, name or path]"
#define TEXT_SEARCH_STOPPED                                                                        \
    "[stopped after %s; search a directory further down for the rest]" /* one of these three */
#define TEXT_SEARCH_LOOKED  "%u files and directories"
#define TEXT_SEARCH_READ    "reading %s" /* SIZE */
#define TEXT_SEARCH_SECONDS "%s seconds" /* SECONDS */
#define TEXT_SEARCH_DEEP    "[directories more than %u levels down were left out]"
/* SIZE, PATHS, TOOL run_command; and PATHS */
#define TEXT_SEARCH_LARGE                                                                          \
    "[larger than the read limit of %s and left out: %s; search them with %s and grep]"
#define TEXT_SEARCH_UNREADABLE "[could not be read: %s]"
#define TEXT_SEARCH_AND_MORE   " and %" PRIu64 " more"

/* Refused. */
#define TEXT_SEARCH_NAME_NUL "name holds a NUL character, which the name of a file cannot."
#define TEXT_SEARCH_LINE_END                                                                       \
    "text holds a line end, and lines are searched one by one. Give a text of a single line."
#define TEXT_SEARCH_SLASH                                                                          \
    "name is a pattern for the name of a file alone, which has no / in it. Give the directory as " \
    "path."
#define TEXT_SEARCH_LONG "name is longer than the %u bytes that a pattern may have."

/* --- Results of the tools for background processes --- */

#define TEXT_PROCESS_STARTED "Started process %" PRIu32 "."

/* In the place of output, and the notes of the last line, a space between two. */
#define TEXT_NO_NEW_OUTPUT    "(no new output)"
#define TEXT_PROCESS_RUNNING  "[running]"
#define TEXT_PROCESS_SIGNAL   "[ended by signal %" PRIu32 "]"
#define TEXT_PROCESS_VANISHED "[ended with its sandbox]"
#define TEXT_PROCESS_UNKNOWN  "[ended, and it is not known how: %s]" /* sentence */

/* Refused; numbers are "1, 2 and 3". */
#define TEXT_PROCESS_NONE "There is no process %.15g: none has been started in this sandbox."
#define TEXT_PROCESS_NO_SUCH                                                                       \
    "There is no process %.15g. Those that run: %s. Those that have ended: %s." /* numbers */
#define TEXT_PROCESS_NOBODY "none"
#define TEXT_PROCESS_MANY                                                                          \
    "%zu processes run already, and no more can at once: %s. Stop one of them first, or let this " \
    "command wait until one has ended." /* numbers */
#define TEXT_WAIT_REFUSED                                                                          \
    "wait_seconds must be a number of 0 or more, and %s is none. Leave it out not to wait."

/* --- Refusals: answers that say what to mend --- */

#define TEXT_FAILED            "The %s tool failed: %s"               /* TOOL, sentences */
#define TEXT_ARGUMENTS_REFUSED "The arguments of %s were refused: %s" /* TOOL, sentences */

/* The file is larger than what may be read, or it has no size and no end. */
#define TEXT_READ_TOO_LARGE                                                                        \
    "%s has %s, which is more than the read limit of %s. Give offset and limit to see some of "    \
    "its lines, or use %s with head, tail, sed -n or grep." /* PATH, SIZE, SIZE, TOOL run_command  \
                                                             */
#define TEXT_READ_ENDLESS                                                                          \
    "%s holds more than the read limit of %s. Use %s with head, tail, sed -n or grep to see a "    \
    "part of it." /* PATH, SIZE, TOOL run_command */

#define TEXT_BYTES_SECRET                                                                          \
    "%s is no text, and it holds a value that must not be shown, so its bytes are not. Use %s to " \
    "see a part of it." /* PATH, TOOL run_command */

#define TEXT_TIMEOUT_REFUSED                                                                       \
    "timeout_seconds must be a number above 0, and %s is none. Leave it out to get the default "   \
    "of %s seconds." /* SECONDS, SECONDS */
#define TEXT_PATH_NUL   "path holds a NUL character, which the name of a file cannot."
#define TEXT_PATH_EMPTY "path is empty. Give the path of a file."
#define TEXT_COMMAND_NUL                                                                           \
    "command holds a NUL character, which no command can. In a printf format it is written \\0."
#define TEXT_COMMAND_EMPTY "command is empty. Give a shell command."
#define TEXT_COMMAND_LONG                                                                          \
    "command has %s, which is more than the %s that one command may have. Write it to a file "     \
    "with %s, and run that."                                    /* SIZE, SIZE, TOOL write_file */
#define TEXT_NOT_STARTED "The command could not be started: %s" /* sentence */
#define TEXT_LIFE_OVER                                                                             \
    "The sandbox has no time left to run a command in. Finish up with what you have."

/* Behind TEXT_FAILED. */
#define TEXT_LOST                                                                                  \
    "the sandbox was lost, and the next call gets a new, empty one. Files from earlier calls are " \
    "gone: make again what you need."
