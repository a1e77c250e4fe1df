#pragma once

#include <stdexcept>
#include <string>

#include "core/base/result.h"

namespace ptrain {

// The engine's way to fail: this rank must end. entry.cc catches it, once.
class EngineError : public std::runtime_error {
 public:
  explicit EngineError(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  EngineError(ExitCode code, std::string message, std::string hint = "")
      : EngineError(Error{code, std::move(message), std::move(hint), {}}) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// The value of a Result, or an EngineError.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw EngineError(std::move(result).error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

[[noreturn]] void throw_bug(const char* file, int line, const char* what);

}  // namespace ptrain

// A condition that only a bug of ours can break.
#define PT_CHECK(condition)                                                \
  do {                                                                     \
    if (!(condition)) ::ptrain::throw_bug(__FILE__, __LINE__, #condition); \
  } while (false)
