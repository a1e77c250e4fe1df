#include "launcher/supervise/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace ptrain::supervise {

namespace {

sigset_t held_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = held_set();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  file_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

StopSignals::~StopSignals() {
  while (next()) {
  }  // one that came too late must not end us when it is let through again
  const sigset_t set = held_set();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::close(file_);
}

std::optional<int> StopSignals::next() {
  signalfd_siginfo info{};
  while (::read(file_, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGUSR1) return static_cast<int>(info.ssi_signo);
  return std::nullopt;
}

}  // namespace ptrain::supervise
