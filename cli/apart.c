/* SPDX-License-Identifier: Apache-2.0
 * A command that calls plug-ins, in a process of its own: what they do to it is told in words. */
#include "cli/internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

bool kvc_cli_names_plugin(int n, char **words)
{
    for (int i = 0; i < n; i++)
        for (const char *so = words[i]; (so = strstr(so, ".so")) != NULL;) {
            so += strlen(".so");
            if (!*so || strchr(":+,", *so))
                return true;
        }
    return false;
}

static int judge(int status, bool finished)
{
    static const char advice[] = "'kvcast policy check' tells in which hook, and at which request";
    if (WIFEXITED(status) && finished)
        return WEXITSTATUS(status);
    if (WIFEXITED(status)) {
        fprintf(stderr, "kvcast: a plug-in ended the program; %s\n", advice);
        return KVC_EXIT_FAILED;
    }
    int sig = WTERMSIG(status);
    if (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGABRT) {
        fprintf(stderr, "kvcast: it crashed (%s), most likely in a plug-in; %s\n", strsignal(sig),
                advice);
        return KVC_EXIT_FAILED;
    }
    signal(sig, SIG_DFL); /* as if it had come here */
    raise(sig);
    return KVC_EXIT_FAILED;
}

int kvc_cli_apart(struct kvc_cli *cli, int (*run)(struct kvc_cli *cli))
{
    int ends[2], status = 0;
    char said = 0;
    fflush(NULL);
    if (pipe(ends) != 0)
        return run(cli);
    pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return run(cli);
    }
    if (child == 0) {
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
        close(ends[0]);
        int rc = run(cli);
        while (write(ends[1], "f", 1) < 0 && errno == EINTR)
            ;
        close(ends[1]);
        return rc; /* and ends as any other */
    }
    close(ends[1]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    bool finished = read(ends[0], &said, 1) == 1;
    close(ends[0]);
    return judge(status, finished);
}
