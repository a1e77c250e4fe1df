#pragma once

#include "core/model/family.h"

namespace ptrain::model::families {

Family llama();
Family mistral();
Family qwen2();
Family qwen3();
Family gpt2();
Family gemma2();
Family gemma3();
Family mixtral();
Family qwen3_moe();
Family deepseek_v2();
Family deepseek_v3();

}  // namespace ptrain::model::families
