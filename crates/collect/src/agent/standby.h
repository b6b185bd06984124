/* A program that carries the agent without being traced: its functions are patched as they are loaded, and switched off. By its
 * door (door.h) calls are switched on and off again in a program that runs, as often as wanted. What to patch is planned by
 * gpuscope's own program (planner.h).
 */
#ifndef GPUSCOPE_AGENT_STANDBY_H
#define GPUSCOPE_AGENT_STANDBY_H

#include "path.h"

/* Behind this a folder follows, in place of a socket: where the agent, the linkers' plan and gpuscope lie. */
#define STANDBY "standby:"
#define LINKERS "/linkers"
#define MOST_LINKER_CALLS 256

static char folder[LONGEST_PATH + 8];

INLINE bool stands_by(void)
{
	return folder[0];
}

#endif
