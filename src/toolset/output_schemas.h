/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of what the tools answer beside their text (JSON Schema 2020-12): the same facts, for
 * programs. Every answer may also hold OUTPUT_COMMON. Texts in it are masked and cut as those for a
 * model are.
 */
#pragma once

#define OUTPUT_COMMON                                                                              \
    "\"remaining_seconds\":{\"type\":\"number\",\"description\":"                                  \
    "\"Of the sandbox's life; absent where no end is known\"},"                                    \
    "\"replaced\":{\"type\":\"boolean\",\"description\":"                                          \
    "\"The sandbox was lost before this call; files of earlier calls are gone\"}"

#define OUTPUT_ENDED                                                                               \
    "\"exit_code\":{\"type\":\"integer\"},"                                                        \
    "\"signal\":{\"type\":\"integer\",\"description\":\"By which it was ended\"},"

#define OUTPUT_RUN_COMMAND                                                                         \
    "{\"type\":\"object\",\"properties\":{" OUTPUT_ENDED "\"timed_out\":{\"type\":\"boolean\"},"   \
    "\"applied_timeout_seconds\":{\"type\":\"number\",\"description\":"                            \
    "\"Most time that the command could have; present when that is less than was asked for\"},"    \
    "\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":\"string\"},"                           \
    "\"bytes_replaced\":{\"type\":\"boolean\",\"description\":"                                    \
    "\"U+FFFD stands for bytes that are no UTF-8\"},"                                              \
    "\"truncated\":{\"type\":\"boolean\",\"description\":\"Earlier output is not shown\"},"        \
    "\"stdout_dropped_bytes\":{\"type\":\"integer\",\"description\":"                              \
    "\"That the command wrote in front of stdout\"},"                                              \
    "\"stderr_dropped_bytes\":{\"type\":\"integer\",\"description\":"                              \
    "\"That the command wrote in front of stderr\"},"                                              \
    "\"denied\":{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"description\":"              \
    "\"What the network policy refused, where the backend tells\"}," OUTPUT_COMMON                 \
    "},\"required\":[\"timed_out\",\"stdout\",\"stderr\",\"truncated\",\"stdout_dropped_bytes\","  \
    "\"stderr_dropped_bytes\"]}"

#define OUTPUT_READ_FILE                                                                           \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"text\":{\"type\":\"string\"},"                                                              \
    "\"first_line\":{\"type\":\"integer\"},\"lines\":{\"type\":\"integer\"},"                      \
    "\"next_offset\":{\"type\":\"integer\",\"description\":\"Present when lines follow\"},"        \
    "\"remaining_lines\":{\"type\":\"integer\",\"description\":\"Where they were counted\"},"      \
    "\"line_too_long\":{\"type\":\"boolean\",\"description\":"                                     \
    "\"The first line is longer than the output limit, and nothing of it is in text\"},"           \
    "\"media_type\":{\"type\":\"string\",\"description\":"                                         \
    "\"Of a file that is no text, whose bytes come beside this\"},"                                \
    "\"bytes\":{\"type\":\"integer\"}," OUTPUT_COMMON "}}"

#define OUTPUT_WRITE_FILE                                                                          \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"path\":{\"type\":\"string\"},\"bytes\":{\"type\":\"integer\"}," OUTPUT_COMMON               \
    "},\"required\":[\"path\",\"bytes\"]}"

#define OUTPUT_LIST_DIRECTORY                                                                      \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"entries\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"              \
    "\"name\":{\"type\":\"string\",\"description\":"                                               \
    "\"Where it is not UTF-8 in the form of a shell's $'...'\"},"                                  \
    "\"directory\":{\"type\":\"boolean\"}},"                                                       \
    "\"required\":[\"name\",\"directory\"]}},"                                                     \
    "\"omitted\":{\"type\":\"integer\",\"description\":\"Entries that are not "                    \
    "shown\"}," OUTPUT_COMMON "},\"required\":[\"entries\",\"omitted\"]}"

#define OUTPUT_EDIT_FILE                                                                           \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"path\":{\"type\":\"string\"},"                                                              \
    "\"line\":{\"type\":\"integer\",\"description\":\"Where the change begins\"}," OUTPUT_COMMON   \
    "},\"required\":[\"path\",\"line\"]}"

#define OUTPUT_SEARCH_FILES                                                                        \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"matches\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"              \
    "\"path\":{\"type\":\"string\"},\"line\":{\"type\":\"integer\"},\"text\":{\"type\":"           \
    "\"string\"}},"                                                                                \
    "\"required\":[\"path\"]}},"                                                                   \
    "\"complete\":{\"type\":\"boolean\",\"description\":\"Nothing was left out\"}," OUTPUT_COMMON  \
    "},\"required\":[\"matches\",\"complete\"]}"

#define OUTPUT_START_PROCESS                                                                       \
    "{\"type\":\"object\",\"properties\":{\"process\":{\"type\":\"integer\"}," OUTPUT_COMMON       \
    "},\"required\":[\"process\"]}"

#define OUTPUT_PROCESS_OUTPUT                                                                      \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"process\":{\"type\":\"integer\"},\"running\":{\"type\":\"boolean\"}," OUTPUT_ENDED          \
    "\"output\":{\"type\":\"string\",\"description\":\"Standard output and standard error\"},"     \
    "\"dropped_bytes\":{\"type\":\"integer\",\"description\":\"In front of output, not "           \
    "shown\"}," OUTPUT_COMMON                                                                      \
    "},\"required\":[\"process\",\"running\",\"output\",\"dropped_bytes\"]}"

#define OUTPUT_STOP_PROCESS OUTPUT_PROCESS_OUTPUT

#define OUTPUT_PUBLISH_EXPORTS                                                                     \
    "{\"type\":\"object\",\"properties\":{"                                                        \
    "\"exports\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"              \
    "\"path\":{\"type\":\"string\"},\"url\":{\"type\":\"string\"},"                                \
    "\"files\":{\"type\":\"integer\"},\"bytes\":{\"type\":\"integer\"},"                           \
    "\"sha256\":{\"type\":\"string\",\"description\":\"Of a single file\"}},"                      \
    "\"required\":[\"path\",\"url\",\"files\",\"bytes\"]}},"                                       \
    "\"warnings\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}," OUTPUT_COMMON             \
    "},\"required\":[\"exports\"]}"
