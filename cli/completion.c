/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion for bash: commands, options, and the values of options that have a list or a file. */
#include "cli/text.h"

/* How bash completes the value of an option; NULL: not at all. The caller frees it. */
static char *completion_of_value(const struct hv_setting *row)
{
    g_autofree char *names = NULL;

    switch (row->kind) {
    case HV_SETTING_CHOICE:
        names = g_strjoinv(" ", (char **)row->choices());
        return g_strdup_printf("-W \"%s\"", names);
    case HV_SETTING_NEW_FILE:
    case HV_SETTING_KEY_FILE:
    case HV_SETTING_FILE:
        return g_strdup("-f");
    case HV_SETTING_FOLDER:
        return g_strdup("-d");
    default:
        return NULL;
    }
}

static void completion_of_command(GString *to, const struct cli_command *command)
{
    g_autoptr(GPtrArray) options = cli_command_options(command, false);
    g_autoptr(GString) all = g_string_new("--help"), with_value = g_string_new(NULL);

    g_string_append_printf(to, "_hcasim_%s() {\n    case $1 in\n", command->name);
    for (unsigned i = 0; i < options->len; i++) {
        const struct cli_option *option = g_ptr_array_index(options, i);
        g_autofree char *name = cli_option_name(option);
        g_autofree char *how = completion_of_value(&option->row);

        g_string_append_printf(all, " --%s", name);
        if (option->row.kind != HV_SETTING_FLAG) {
            g_string_append_printf(with_value, "%s--%s", with_value->len ? "|" : "", name);
            if (option->letter) {
                g_string_append_printf(with_value, "|-%c", option->letter);
            }
        }
        if (how) {
            g_string_append_printf(to, "    --%s) value='%s' ;;\n", name, how);
        }
    }
    g_string_append_printf(to,
                           "    *) value= ;;\n    esac\n    options='%s'\n"
                           "    with_value='|%s|'\n    runs_program=%d\n}\n\n",
                           all->str, with_value->str, command->runs_program);
}

/* The word before the cursor's may be an option that waits for its value; a program and its
 * arguments are completed as commands are. */
static const char dispatch[] =
    "_hcasim() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} i\n"
    "    local value options with_value runs_program\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_hcasim_commands help --version --help\" -- "
    "\"$word\")\n"
    "        return\n"
    "    fi\n"
    "    if [ \"$command\" = help ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_hcasim_commands $_hcasim_topics\" -- "
    "\"$word\")\n"
    "        return\n"
    "    fi\n"
    "    case \" $_hcasim_commands \" in *\" $command \"*) ;; *) return ;; esac\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        \"_hcasim_$command\" \"${COMP_WORDS[i]}\"\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --) ((i++)); break ;;\n"
    "        -*) [[ $with_value != *\"|${COMP_WORDS[i]}|\"* ]] || ((i++)) ;;\n"
    "        *) [ \"$runs_program\" -eq 0 ] || break ;;\n"
    "        esac\n"
    "    done\n"
    "    \"_hcasim_$command\" \"${COMP_WORDS[COMP_CWORD - 1]}\"\n"
    "    if [ \"$i\" -gt \"$COMP_CWORD\" ]; then\n"
    "        [ -z \"$value\" ] || eval \"mapfile -t COMPREPLY < <(compgen $value -- "
    "\\\"\\$word\\\")\"\n"
    "    elif [ \"$i\" -lt \"$COMP_CWORD\" ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
    "    elif [[ $word == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
    "    elif [ \"$runs_program\" -eq 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
    "    else\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
    "    fi\n"
    "}\n\n"
    "complete -o filenames -F _hcasim hcasim\n";

char *cli_completion(void)
{
    GString *to = g_string_new("# SPDX-License-Identifier: BSD-2-Clause\n"
                               "# Made by hcasim itself from the tables of its options.\n"
                               "_hcasim_commands='");
    const struct cli_command *command;
    const struct cli_topic *topic;

    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        g_string_append_printf(to, "%s%s", i ? " " : "", command->name);
    }
    g_string_append(to, "'\n_hcasim_topics='");
    for (unsigned i = 0; (topic = cli_topic_at(i)); i++) {
        g_string_append_printf(to, "%s%s", i ? " " : "", topic->name);
    }
    g_string_append(to, "'\n\n");
    for (unsigned i = 0; (command = cli_command_at(i)); i++) {
        completion_of_command(to, command);
    }
    g_string_append(to, dispatch);
    return g_string_free(to, FALSE);
}
