// Static probes as <sys/sdt.h> and frameworks of their own write them: a nop and a note.
#pragma once

#define PROBE_NOTE(instruction, provider, name, semaphore, args)                                                       \
    "990: " instruction "\n"                                                                                           \
    ".pushsection .note.stapsdt,\"\",\"note\"\n"                                                                       \
    ".balign 4\n"                                                                                                      \
    ".4byte 992f-991f, 994f-993f, 3\n"                                                                                 \
    "991: .asciz \"stapsdt\"\n"                                                                                        \
    "992: .balign 4\n"                                                                                                 \
    "993: .8byte 990b\n"                                                                                               \
    ".8byte 0\n"                                                                                                       \
    ".8byte " semaphore "\n"                                                                                           \
    ".asciz \"" provider "\"\n"                                                                                        \
    ".asciz \"" name "\"\n"                                                                                            \
    ".asciz \"" args "\"\n"                                                                                            \
    "994: .balign 4\n"                                                                                                 \
    ".popsection\n"

// as PyTorch has them: of this library alone
#define PROBE_SEMAPHORE(name)                                                                                          \
    __attribute__((section(".probes"), used, visibility("hidden"))) volatile unsigned short name = 0
