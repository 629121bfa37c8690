/* SPDX-License-Identifier: Apache-2.0 */
/* The exports of `atoll run`: between the command's good end and that of its sandbox. */
#pragma once

#include "cli/command.h"
#include "cli/result.h"
#include "client/run.h"
#include "core/spec.h"
#include "export/export.h"

struct run_export {
    struct cli *cli;
    const struct spec *spec;    /* borrowed */
    struct result_file *result; /* borrowed: gets what was published */
    bool verbose;
    struct run_finish finish; /* for the run_request */
    struct run *run;
    struct exporting *export; /* owned while the run is under way */
    char *id; /* of the sandbox, with its backend's name if that is not local; owned */
};

/** run_export_init() - what is to be done at the end of a run; nothing is begun */
void run_export_init(struct run_export *x, struct cli *cli, const struct spec *spec, bool verbose,
                     struct result_file *result);
