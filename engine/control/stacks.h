#pragma once

namespace ptrain::control {

// Writes to stderr where each thread of this process is: its name, state, what it waits for in the
// kernel, and its frames. For a process that is about to be killed: threads are interrupted for it.
// Takes a few hundredths of a second a thread.
void write_stacks();

}  // namespace ptrain::control
