// SPDX-License-Identifier: GPL-2.0-or-later
// Linked with -Wl,--wrap=_exit in preset coverage: a process that ends by _exit(), such as every child of a fork, counts
// too.
void __gcov_dump(void);
_Noreturn void __real__exit(int status);

_Noreturn void __wrap__exit(int status)
{
    __gcov_dump();
    __real__exit(status);
}
