#include "launcher/supervise/control_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace ptrain::supervise {

namespace {

// So many ranks always have something to say; to read what some milliseconds bring at once takes
// less time than to wake for every message.
constexpr int kCrowd = 256;
constexpr std::chrono::milliseconds kGather{5};

tl::unexpected<Error> refused(std::string_view action) {
  return fail(ExitCode::kEnvironment,
              fmt::format("cannot {} the control port: {}", action, std::strerror(errno)),
              "ptrain needs a free TCP port at the address at which ranks reach it");
}

Result<std::string> random_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return refused("make the token of");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Compares without telling by its time how much agreed.
bool equal_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

// The kernel of the other machine acknowledges what is sent and answers probes, whatever its
// processes do. Heartbeats come every second, so that probes are sent only in their absence.
void watch_machine(int file) {
  const int on = 1, second = 1;
  const unsigned limit_ms = std::chrono::milliseconds(ControlServer::kNodeSilence).count();
  ::setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &second, sizeof second);
  ::setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &second, sizeof second);
  ::setsockopt(file, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

bool says_unreachable(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == EHOSTDOWN || error == ENETDOWN;
}

}  // namespace

ControlServer::ControlServer(int listener, int port, std::string token, int attempt, int num_ranks)
    : listener_(listener),
      watched_(::epoll_create1(EPOLL_CLOEXEC)),
      port_(port),
      attempt_(attempt),
      num_ranks_(num_ranks),
      token_(std::move(token)) {}

Result<ControlServer> ControlServer::open(int attempt, int num_ranks, const std::string& host) {
  PTRAIN_TRY(std::string token, random_token());
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return refused("open");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(file, generic, size) != 0 || ::listen(file, SOMAXCONN) != 0 ||
      ::getsockname(file, generic, &size) != 0) {
    ::close(file);
    return refused("listen on");
  }
  ControlServer server(file, ntohs(address.sin_port), std::move(token), attempt, num_ranks);
  if (!server.watch(file)) return refused("watch");
  return server;
}

bool ControlServer::watch(int file) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = file;
  return ::epoll_ctl(watched_, EPOLL_CTL_ADD, file, &wanted) == 0;
}

ControlServer::~ControlServer() {
  for (const auto& [file, connection] : connections_) ::close(file);
  if (listener_ >= 0) ::close(listener_);
  if (watched_ >= 0) ::close(watched_);
}

ControlServer::ControlServer(ControlServer&& other) noexcept
    : listener_(std::exchange(other.listener_, -1)),
      watched_(std::exchange(other.watched_, -1)),
      port_(other.port_),
      attempt_(other.attempt_),
      num_ranks_(other.num_ranks_),
      token_(std::move(other.token_)),
      connections_(std::exchange(other.connections_, {})),
      ranks_(std::move(other.ranks_)) {}

std::vector<ControlServer::Received> ControlServer::poll(std::chrono::milliseconds timeout,
                                                         std::span<const int> wake) {
  std::vector<pollfd> files{{watched_, POLLIN, 0}};
  for (const int file : wake) files.push_back({file, POLLIN, 0});
  std::vector<Received> received;
  if (::poll(files.data(), files.size(), static_cast<int>(timeout.count())) <= 0) return received;
  if (files[0].revents != 0 && num_ranks_ >= kCrowd) std::this_thread::sleep_for(kGather);
  std::array<epoll_event, 256> ready{};
  const int count = ::epoll_wait(watched_, ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int file = ready[static_cast<std::size_t>(i)].data.fd;
    if (file == listener_)
      accept();
    else
      read(file, received);
  }
  return received;
}

void ControlServer::accept() {
  // Strangers that connect and say nothing must not use up our files.
  const std::size_t limit = static_cast<std::size_t>(num_ranks_) * 2 + 16;
  for (;;) {
    const int file = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file < 0) return;
    if (connections_.size() >= limit || !watch(file)) {
      ::close(file);
      continue;
    }
    watch_machine(file);
    connections_.emplace(file, Connection{});
  }
}

void ControlServer::read(int file, std::vector<Received>& received) {
  Connection& connection = connections_[file];
  std::array<char, 16384> buffer;
  const ssize_t size = ::recv(file, buffer.data(), buffer.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const bool unreachable = size < 0 && says_unreachable(errno);
  bool good = size > 0;
  if (good) connection.unread.append(buffer.data(), static_cast<std::size_t>(size));
  while (good) {
    const auto end = connection.unread.find('\n');
    if (end == std::string::npos) break;
    const std::string line = connection.unread.substr(0, end);
    connection.unread.erase(0, end + 1);
    good = take_line(connection, line, received);
  }
  if (good && connection.unread.size() <= run::kMaxControlLine) return;
  if (connection.rank >= 0) {
    received.emplace_back().rank = connection.rank;
    received.back().what = Gone{unreachable};
  }
  ::close(file);
  connections_.erase(file);
}

bool ControlServer::take_line(Connection& connection, std::string_view line,
                              std::vector<Received>& received) {
  auto message = run::message_from_line(line);
  if (!message) return false;
  if (connection.rank < 0) {
    if (!welcome(connection, *message)) return false;
  } else if (std::holds_alternative<run::Hello>(*message)) {
    return false;
  }
  received.push_back({connection.rank, std::move(*message)});
  return true;
}

bool ControlServer::welcome(Connection& connection, const run::ControlMessage& message) {
  const auto* hello = std::get_if<run::Hello>(&message);
  if (hello == nullptr || !equal_secret(hello->token, token_)) return false;
  if (hello->attempt != attempt_ || hello->rank < 0 || hello->rank >= num_ranks_) return false;
  if (hello->pid <= 1 || !ranks_.insert(hello->rank).second) return false;
  connection.rank = hello->rank;
  return true;
}

void ControlServer::send(int rank, const run::ControlMessage& message) {
  const std::string line = run::to_line(message);
  for (const auto& [file, connection] : connections_)
    if (connection.rank >= 0 && (rank < 0 || rank == connection.rank))
      // Few and short lines fit the socket's buffer; a lost peer is seen by poll().
      (void)::send(file, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace ptrain::supervise
