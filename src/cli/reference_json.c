/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON forms that the program writes: an option of a command each. */
#include <string.h>

#include "base/cleanup.h"
#include "cli/reference.h"
#include "base/guards.h"

/* Options that write JSON, and what their form is called behind the command's name. */
static const struct {
    const char *option, *file, *what;
} forms[] = {
    {"json", NULL, "on standard output"},
    {"result", "result", "to a file or descriptor"},
};

/* How a run or exec ended is one form, whichever command wrote it. */
static bool was_listed(const struct command *const *table, size_t n, size_t form)
{
    for (size_t i = 0; i < n; i++)
        if (forms[form].file && reference_option(table[i], forms[form].option))
            return true;
    return false;
}

void reference_json(FILE *f, const struct command *const *table)
{
    for (size_t i = 0; table[i]; i++)
        for (size_t k = 0; k < ARRAY_SIZE(forms); k++) {
            const char *file = forms[k].file ? forms[k].file : table[i]->name;

            if (reference_option(table[i], forms[k].option) && !was_listed(table, i, k))
                fprintf(f, "%s.schema.json: what \"atoll %s --%s\" writes %s\n", file,
                        table[i]->name, forms[k].option, forms[k].what);
        }
    fputs("manifest.schema.json: what \"atoll export\" writes into a folder that it publishes\n",
          f);
}
