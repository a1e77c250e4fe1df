#include "launcher/preflight/ring.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace ptrain::preflight {

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;  // of a round
constexpr int kRounds = 4;
constexpr timeval kPatience{2, 0};
constexpr std::size_t kMostLine = 1024;

// Closes itself.
class Socket {
 public:
  explicit Socket(int file) : file_(file) {}
  ~Socket() {
    if (file_ >= 0) ::close(file_);
  }
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int file() const { return file_; }

 private:
  int file_;
};

void set_patience(int file) {
  ::setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
}

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

std::optional<Socket> connect_to(const std::string& host, int port) {
  const sockaddr_in address = address_of(host, port);
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_patience(socket.file());
  if (::connect(socket.file(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return std::nullopt;
  return socket;
}

// Bound to a free port of `host`, or of all addresses where that is empty.
std::optional<std::pair<Socket, int>> listen_at(const std::string& host) {
  sockaddr_in address = address_of(host.empty() ? "0.0.0.0" : host, 0);
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  set_patience(socket.file());
  if (::bind(socket.file(), generic, size) != 0 || ::listen(socket.file(), SOMAXCONN) != 0 ||
      ::getsockname(socket.file(), generic, &size) != 0)
    return std::nullopt;
  const int port = ntohs(address.sin_port);
  return std::pair(std::move(socket), port);
}

bool send_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(file, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string receive_line(int file) {
  std::string line;
  for (char byte = 0; line.size() < kMostLine && ::recv(file, &byte, 1, 0) == 1;) {
    if (byte == '\n') return line;
    line += byte;
  }
  return "";
}

std::string address_text(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  std::string token;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool receive_block(int file, std::vector<char>& buffer) {
  for (std::size_t left = kBytes; left > 0;) {
    const ssize_t size = ::recv(file, buffer.data(), std::min(left, buffer.size()), 0);
    if (size <= 0) return false;
    left -= static_cast<std::size_t>(size);
  }
  return true;
}

// Takes what the node before sends, and says so. Strangers, who do not know the token, are let go.
void hear_neighbour(const Socket& listener, const std::string& token) {
  std::vector<char> buffer(1 << 18);
  for (int tries = 0; tries < 8; ++tries) {
    const Socket peer(::accept4(listener.file(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.file() < 0) return;
    set_patience(peer.file());
    if (receive_line(peer.file()) != token) continue;
    while (receive_block(peer.file(), buffer) && send_all(peer.file(), "all\n")) {
    }
    return;
  }
}

struct Neighbour {
  std::string node, host;
  int port = 0;
};

void send_to_neighbour(const Neighbour& next, const std::string& token, NodeReport& report) {
  const auto peer = connect_to(next.host, next.port);
  if (!peer) {
    report.next_error = fmt::format("cannot reach {} at {}:{}: {}", next.node, next.host, next.port,
                                    std::strerror(errno));
    return;
  }
  const std::string block(kBytes, 'x');
  bool good = send_all(peer->file(), token + "\n");
  for (int round = 0; good && round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    good = send_all(peer->file(), block) && receive_line(peer->file()) == "all";
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    report.next_bytes_per_s =
        std::max(report.next_bytes_per_s, static_cast<double>(kBytes) / took.count());
  }
  if (!good)
    report.next_error = fmt::format("{} at {} takes nothing from here", next.node, next.host);
}

}  // namespace

Result<RingHub> RingHub::open(const std::string& host, int num_nodes) {
  auto listening = listen_at(host);
  std::string token = random_token();
  if (!listening || token.empty())
    return fail(ExitCode::kEnvironment,
                fmt::format("cannot listen at {}: {}", host, std::strerror(errno)));
  const int file = ::dup(listening->first.file());
  return RingHub(file, listening->second, std::move(token), num_nodes);
}

RingHub::RingHub(int listener, int port, std::string token, int num_nodes)
    : listener_(listener), port_(port), token_(std::move(token)), num_nodes_(num_nodes) {}

RingHub::~RingHub() {
  for (const auto& [file, member] : members_) ::close(file);
  if (listener_ >= 0) ::close(listener_);
}

RingHub::RingHub(RingHub&& other) noexcept
    : listener_(std::exchange(other.listener_, -1)),
      port_(other.port_),
      token_(std::move(other.token_)),
      num_nodes_(other.num_nodes_),
      told_(other.told_),
      members_(std::exchange(other.members_, {})) {}

void RingHub::poll(std::chrono::milliseconds wait) {
  std::vector<pollfd> files{{listener_, POLLIN, 0}};
  if (!told_)
    for (const auto& [file, member] : members_) files.push_back({file, POLLIN, 0});
  if (::poll(files.data(), files.size(), static_cast<int>(wait.count())) <= 0) return;
  if (files[0].revents != 0) accept();
  for (std::size_t i = 1; i < files.size(); ++i)
    if (files[i].revents != 0) read(files[i].fd);
  int ready = 0;
  for (const auto& [file, member] : members_) ready += member.port > 0 ? 1 : 0;
  if (ready == num_nodes_) close();
}

void RingHub::accept() {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  const int file = ::accept4(listener_, reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC);
  if (file < 0) return;
  set_patience(file);
  members_[file].host = address_text(address);
}

// "TOKEN NODE PORT"
void RingHub::read(int file) {
  Member& member = members_[file];
  std::array<char, kMostLine> buffer{};
  const ssize_t size = ::recv(file, buffer.data(), buffer.size(), MSG_DONTWAIT);
  bool good = size > 0;
  if (good) member.unread.append(buffer.data(), static_cast<std::size_t>(size));
  if (good && member.unread.ends_with('\n')) {
    std::istringstream words(member.unread);
    std::string token;
    good = (words >> token >> member.node >> member.port) && token == token_;
  }
  if (good && member.unread.size() <= kMostLine) return;
  ::close(file);
  members_.erase(file);
}

void RingHub::close() {
  if (std::exchange(told_, true)) return;
  std::vector<std::pair<int, const Member*>> ring;
  for (const auto& [file, member] : members_)
    if (member.port > 0) ring.emplace_back(file, &member);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Member& next = *ring[(i + 1) % ring.size()].second;
    (void)send_all(ring[i].first, fmt::format("{} {} {}\n", next.node, next.host, next.port));
  }
}

void join_ring(const std::string& host, int port, const std::string& token, NodeReport& report) {
  auto listening = listen_at("");
  const auto hub = connect_to(host, port);
  if (!listening || !hub) {
    report.next_error =
        fmt::format("cannot reach the first node at {}:{}: {}", host, port, std::strerror(errno));
    return;
  }
  const bool sent =
      send_all(hub->file(), fmt::format("{} {} {}\n", token, report.node, listening->second));
  std::istringstream words(sent ? receive_line(hub->file()) : "");
  Neighbour next;
  if (!(words >> next.node >> next.host >> next.port)) {
    report.next_error = "was not told of another node";
    return;
  }
  const auto hearing = std::async(
      std::launch::async, [&listening, &token] { hear_neighbour(listening->first, token); });
  send_to_neighbour(next, token, report);
}

}  // namespace ptrain::preflight
