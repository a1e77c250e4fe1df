#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include "core/model/exchanges.h"
#include "engine/comm/communicator.h"

namespace ptrain::layers {

using model::ExchangeAxis;
using model::ExchangeKind;

// What a layer needs from other ranks between two of its segments.
struct Exchange {
  ExchangeKind kind = ExchangeKind::kAllGather;
  ExchangeAxis axis = ExchangeAxis::kTensor;
  // Starts it; what it reads and writes stays alive until the layer goes on.
  std::function<comm::WorkHandle(comm::Communicator&)> start;
  // That this rank hands in, what it keeps itself among it; 0: not told. For the trace.
  std::int64_t bytes = 0;
};

// A layer's call as a coroutine: code that reads from top to bottom, cut into segments where it
// says `co_await exchange(...)`. Each segment is an action of the program and each exchange is one
// between them, so that whoever runs the program decides when they happen. What the call holds
// lives in its frame from segment to segment. Nothing runs before the first resume().
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  // Runs one segment. The exchange that must be made before the next one, or null at the end of the
  // call. Throws what the call throws.
  const Exchange* resume();

  // A part of a layer may be such a call too: `co_await part(...)` runs it within this one.
  struct Awaiter;
  Awaiter operator co_await() && noexcept;

 private:
  explicit Task(Handle handle) : handle_(handle) {}
  // Of a call and the parts that it waits in.
  struct Chain {
    std::coroutine_handle<> innermost;
    const Exchange* pending = nullptr;
  };
  Handle handle_;
};

// Runs a call that needs no other rank. EngineError: it does.
void run_alone(Task task);

class ExchangeAwaiter;
ExchangeAwaiter exchange(Exchange exchange);

struct Task::promise_type {
  Chain own;
  Chain* chain = &own;
  std::coroutine_handle<> parent;
  std::exception_ptr error;

  Task get_return_object() {
    own.innermost = Handle::from_promise(*this);
    return Task(Handle::from_promise(*this));
  }
  std::suspend_always initial_suspend() noexcept { return {}; }
  struct BackToParent {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle ended) noexcept {
      promise_type& promise = ended.promise();
      if (!promise.parent) return std::noop_coroutine();
      promise.chain->innermost = promise.parent;
      return promise.parent;
    }
    void await_resume() noexcept {}
  };
  BackToParent final_suspend() noexcept { return {}; }
  void return_void() {}
  void unhandled_exception() { error = std::current_exception(); }
};

struct Task::Awaiter {
  Handle part;
  bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(Handle parent) noexcept {
    part.promise().parent = parent;
    part.promise().chain = parent.promise().chain;
    part.promise().chain->innermost = part;
    return part;
  }
  void await_resume() {
    if (part.promise().error) std::rethrow_exception(part.promise().error);
  }
};

inline Task::Awaiter Task::operator co_await() && noexcept { return {handle_}; }

class ExchangeAwaiter {
 public:
  explicit ExchangeAwaiter(Exchange exchange) : exchange_(std::move(exchange)) {}
  bool await_ready() noexcept { return false; }
  void await_suspend(Task::Handle waiting) noexcept {
    waiting.promise().chain->pending = &exchange_;
  }
  void await_resume() noexcept {}

 private:
  Exchange exchange_;
};

inline ExchangeAwaiter exchange(Exchange exchange) { return ExchangeAwaiter(std::move(exchange)); }

}  // namespace ptrain::layers
