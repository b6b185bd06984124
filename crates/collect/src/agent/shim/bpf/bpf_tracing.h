/* The helpers that the programs in the kernel are given by the kernel. */
#include "../../host.h"
