#include "engine/layers/task.h"

#include "engine/base/engine_error.h"

namespace ptrain::layers {

const Exchange* Task::resume() {
  promise_type& promise = handle_.promise();
  promise.chain->pending = nullptr;
  promise.chain->innermost.resume();
  if (promise.error) std::rethrow_exception(std::exchange(promise.error, nullptr));
  return promise.chain->pending;
}

void run_alone(Task task) {
  if (const Exchange* needed = task.resume())
    throw EngineError(ExitCode::kBug, std::string("a layer that runs alone needs ") +
                                          std::string(to_string(needed->kind)) + " over " +
                                          std::string(to_string(needed->axis)));
}

}  // namespace ptrain::layers
