#include "launcher/supervise/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace ptrain::supervise {

namespace {

constexpr int kAtOnce = 1;  // what the signal carries
constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR2};
// By default each would end this process; a file grown too large (XFSZ) is an error of its write.
constexpr int kMeaningless[] = {SIGUSR1, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXFSZ};

sigset_t held_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStops) sigaddset(&set, signal);
  for (const int signal : kMeaningless) sigaddset(&set, signal);
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

std::optional<StopSignal> StopSignals::next() {
  signalfd_siginfo info{};
  while (::read(file_, &info, sizeof info) == sizeof info) {
    const auto number = static_cast<int>(info.ssi_signo);
    if ((heeds_warnings_ && number == SIGUSR1) ||
        std::ranges::find(kStops, number) != std::end(kStops))
      return StopSignal{number, info.ssi_code == SI_QUEUE && info.ssi_int == kAtOnce};
  }
  return std::nullopt;
}

bool stop_at_once(int pid) {
  sigval value{};
  value.sival_int = kAtOnce;
  return ::sigqueue(pid, SIGTERM, value) == 0;
}

}  // namespace ptrain::supervise
