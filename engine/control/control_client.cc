#include "engine/control/control_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/run/build_id.h"
#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/control/cpus_allowed.h"
#include "engine/control/resident_bytes.h"
#include "engine/control/stacks.h"

namespace ptrain::control {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kHeartbeat{1000};
constexpr std::chrono::milliseconds kTermGrace{1000};
constexpr unsigned kSilenceMs = 8000;
constexpr std::size_t kMaxMessage = 4096;  // a line has a limit

[[noreturn]] void unreachable(const run::Request& request) {
  throw EngineError(ExitCode::kEnvironment,
                    fmt::format("cannot reach the supervisor at {}:{}: {}", request.control_host,
                                request.control_port, std::strerror(errno)),
                    "start ranks with `ptrain run`, not by hand");
}

int connect_to(const run::Request& request) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(request.control_port));
  if (::inet_pton(AF_INET, request.control_host.c_str(), &address.sin_addr) != 1)
    throw EngineError(ExitCode::kBug,
                      "the control host is not an IPv4 address: " + request.control_host);
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) unreachable(request);
  if (::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(file);
    unreachable(request);
  }
  const int on = 1;  // a line is small and must not wait for the next
  ::setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A heartbeat that no one acknowledges: the supervisor's machine is cut off, and has given us up.
  ::setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilenceMs, sizeof kSilenceMs);
  return file;
}

sigset_t term_only() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

// As the kernel has it of late, in seconds.
double round_trip_s(int file) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? 1e-6 * info.tcpi_rtt : 0;
}

run::Hello hello_of(const run::Request& request, int rank) {
  const char* token = std::getenv(run::kControlToken);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return {token == nullptr ? "" : token, request.attempt, rank, static_cast<int>(::getpid()), host,
          std::string(run::build_id()),  cpus_allowed()};
}

}  // namespace

ControlClient::ControlClient(const run::Request& request, int rank) {
  if (request.control_host.empty()) return;
  state_.phase = "starting";
  fault::point("start.control.connect");
  socket_ = connect_to(request);
  fault::point("start.control.hello");
  send(hello_of(request, rank));
  const sigset_t term = term_only();
  term_ = ::signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK);
  thread_ = std::thread([this] { serve(); });
}

ControlClient::~ControlClient() {
  if (socket_ < 0) return;
  closing_ = true;
  ::shutdown(socket_, SHUT_RDWR);  // wakes the thread
  thread_.join();
  ::close(socket_);
  if (term_ >= 0) ::close(term_);
}

void ControlClient::set_phase(std::string phase) {
  const std::lock_guard lock(mutex_);
  state_.phase = std::move(phase);
}

void ControlClient::set_step(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  state_.step = step;
}

void ControlClient::spent(double step_s, double data_s) {
  const std::lock_guard lock(mutex_);
  state_.steps_s += step_s;
  state_.data_s += data_s;
}

void ControlClient::watch_collectives(std::function<Collective()> last) {
  const std::lock_guard lock(mutex_);
  last_collective_ = std::move(last);
}

void ControlClient::step_done(const run::StepDone& done) {
  set_step(done.step);
  send(done);
}

void ControlClient::event(run::EventKind kind, nlohmann::json fields) {
  send(run::EventMessage{kind, std::move(fields)});
}

run::Stop ControlClient::stop() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void ControlClient::goodbye(ExitCode code, std::string message, std::string next_shape) {
  closing_ = true;  // from here on a closed connection is expected
  if (message.size() > kMaxMessage) message.resize(kMaxMessage);
  send(run::Goodbye{code, std::move(message), std::move(next_shape)});
}

void ControlClient::beat() {
  try {
    run::Heartbeat beat;
    {
      const std::lock_guard lock(mutex_);
      beat = state_;
      const Collective last = last_collective_ ? last_collective_() : Collective{};
      beat.collective = last.name;
      beat.waiting = last.waiting;
      beat.waited_s = last.waited_s;
    }
    beat.resident_bytes = resident_bytes();
    beat.round_trip_s = round_trip_s(socket_);
    send(beat);
  } catch (const std::bad_alloc&) {  // the main thread finds out too, and can say it
  }
}

void ControlClient::serve() {
  auto next = Clock::now();
  while (!closing_) {
    const auto now = Clock::now();
    if (now >= next) {
      beat();
      next = now + kHeartbeat;
    }
    const auto wake = term_at_ ? std::min(next, *term_at_ + kTermGrace) : next;
    const auto wait = std::max(Clock::duration(0), wake - now);
    pollfd entries[] = {{socket_, POLLIN, 0}, {term_, POLLIN, 0}};
    const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
    ::poll(entries, 2, static_cast<int>(wait_ms));
    if (entries[0].revents != 0) receive();
    hear_term();
  }
}

void ControlClient::hear_term() {
  signalfd_siginfo info{};
  if (term_ >= 0 && ::read(term_, &info, sizeof info) == sizeof info && !term_at_)
    term_at_ = Clock::now();
  if (!term_at_) return;
  if (stop_requested_) {  // what it is for is being done
    term_at_.reset();
  } else if (Clock::now() - *term_at_ >= kTermGrace) {
    const sigset_t term = term_only();
    ::pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
    ::raise(SIGTERM);
  }
}

void ControlClient::receive() {
  char buffer[4096];
  const ssize_t size = ::recv(socket_, buffer, sizeof buffer, 0);
  if (size < 0 && errno == EINTR) return;
  if (size <= 0 && closing_) return;
  if (size <= 0) abandon();
  unread_.append(buffer, static_cast<std::size_t>(size));
  for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    const auto message = run::message_from_line(std::string_view(unread_).substr(0, end));
    unread_.erase(0, end + 1);
    if (message) obey(*message);
  }
}

void ControlClient::obey(const run::ControlMessage& message) {
  if (std::holds_alternative<run::ShowStacks>(message)) return write_stacks();
  if (!std::holds_alternative<run::Stop>(message)) return;
  const std::lock_guard lock(mutex_);
  stop_ = std::get<run::Stop>(message);
  stop_requested_ = true;
}

void ControlClient::send(const run::ControlMessage& message) {
  if (socket_ < 0) return;
  const std::string line = run::to_line(message);
  std::string_view left = line;
  const std::lock_guard lock(send_mutex_);
  while (!left.empty()) {
    const ssize_t sent = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // the thread sees the closed connection and ends the process
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void ControlClient::abandon() const {
  std::fputs("ptrain: the supervisor is gone; this rank ends\n", stderr);
  std::fflush(stderr);
  ::_exit(static_cast<int>(ExitCode::kNodeLost));
}

}  // namespace ptrain::control
