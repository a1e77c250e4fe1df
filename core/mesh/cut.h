#pragma once

#include <cstdint>
#include <vector>

#include "core/mesh/layout.h"
#include "core/model/architecture.h"

namespace ptrain::mesh {

// Makes the parameters of one rank from those of the whole, which its degrees must divide
// (divisible.h).
class Cutter {
 public:
  Cutter(const model::Architecture& whole, const Layout& layout, int rank,
         model::VocabularyPlace embedding, model::VocabularyPlace head);

  // What tp, or a spread embedding or head, leaves of it. A fused matrix becomes three parameters.
  std::vector<model::ParameterSpec> dense(const model::ParameterSpec& parameter) const;
  // What ep and etp leave of a matrix of expert `number` of a layer: none, or one part. `down`: cut
  // by columns.
  std::vector<model::ParameterSpec> expert(const model::ParameterSpec& parameter, int number,
                                           bool down) const;

 private:
  std::int64_t kv_heads() const;  // heads of keys and values of this rank
  static model::ParameterSpec rows_at(const model::ParameterSpec& parameter,
                                      const model::VocabularyPlace& place);
  model::ParameterSpec repeated(model::ParameterSpec part, int sum_ranks) const;
  model::ParameterSpec key_value(const model::ParameterSpec& parameter, std::int64_t before) const;
  std::vector<model::ParameterSpec> fused(const model::ParameterSpec& parameter) const;

  const model::Architecture& whole_;
  int tp_, ep_, etp_, tp_rank_;
  ExpertCoordinates expert_place_;
  model::VocabularyPlace embedding_, head_;
  std::int64_t kv_heads_, head_dim_;
};

}  // namespace ptrain::mesh
