#include "core/model/place.h"

namespace ptrain::model {

std::int64_t VocabularyPlace::first_row(std::int64_t rows, int of_rank) const {
  const std::int64_t stages = size / num_holders, stage = of_rank / num_holders;
  const std::int64_t begin = rows / num_holders * stage / stages;
  const std::int64_t end = rows / num_holders * (stage + 1) / stages;
  return begin * num_holders + of_rank % num_holders * (end - begin);
}

}  // namespace ptrain::model
