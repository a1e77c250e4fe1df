#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "core/run/exit_code.h"

namespace ptrain {

// A position in a file that the user wrote; line and column count from 1, 0 = unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  bool operator==(const Place&) const = default;
};

// Why an operation failed: what happened, what to do about it, where it was written.
struct Error {
  ExitCode code = ExitCode::kBug;
  std::string message;
  std::string hint;
  Place place;
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(ExitCode code, std::string message, std::string hint = "",
                                  Place place = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(hint), std::move(place)});
}

}  // namespace ptrain

#define PTRAIN_CONCAT_(a, b) a##b
#define PTRAIN_CONCAT(a, b) PTRAIN_CONCAT_(a, b)

// PTRAIN_TRY(auto value, expression): the value of a Result, or return its error from this
// function.
#define PTRAIN_TRY(declaration, expression)                                                      \
  auto PTRAIN_CONCAT(result_, __LINE__) = (expression);                                          \
  if (!PTRAIN_CONCAT(result_, __LINE__))                                                         \
    return tl::unexpected<::ptrain::Error>(std::move(PTRAIN_CONCAT(result_, __LINE__)).error()); \
  declaration = std::move(*PTRAIN_CONCAT(result_, __LINE__))

// PTRAIN_CHECK(expression): return the error of a Status from this function.
#define PTRAIN_CHECK(expression)                                                      \
  do {                                                                                \
    auto status_ = (expression);                                                      \
    if (!status_) return tl::unexpected<::ptrain::Error>(std::move(status_).error()); \
  } while (false)
