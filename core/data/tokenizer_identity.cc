#include "core/data/tokenizer_identity.h"

namespace ptrain::data {

std::string tokenizer_identity(const recipe::Data& data) {
  std::string word = data.tokenizer;
  if (!data.tokenizer_hash.empty()) word += " " + data.tokenizer_hash;
  if (data.loss_on == recipe::LossOn::kAll) word += " with loss on all";
  return word;
}

}  // namespace ptrain::data
