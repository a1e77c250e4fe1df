#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptrain::support {

using Shapes = std::vector<std::vector<std::int64_t>>;

struct PublishedLayer {
  std::string name;
  Shapes shapes;
};

inline Shapes deepseek_v3_layer() {
  Shapes shapes{{7168},       {1536, 7168},  {1536}, {24576, 1536}, {576, 7168}, {512},
                {32768, 512}, {7168, 16384}, {7168}, {256, 7168},   {256}};
  for (int expert = 0; expert < 257; ++expert)  // 256 that are routed, one that is shared
    for (const auto& shape : Shapes{{2048, 7168}, {2048, 7168}, {7168, 2048}})
      shapes.push_back(shape);
  return shapes;
}

// The parameters of one block, in the order of their checkpoints. GPT-OSS keeps its experts in one
// tensor of three dims.
inline std::vector<PublishedLayer> published_layers() {
  const Shapes llama{{8192}, {8192, 8192},  {1024, 8192},  {1024, 8192}, {8192, 8192},
                     {8192}, {28672, 8192}, {28672, 8192}, {8192, 28672}};
  const Shapes gpt_oss{{2880},      {4096, 2880},
                       {4096},      {512, 2880},
                       {512},       {512, 2880},
                       {512},       {2880, 4096},
                       {2880},      {64},
                       {2880},      {128, 2880},
                       {128},       {128, 2880, 5760},
                       {128, 5760}, {128, 2880, 2880},
                       {128, 2880}};
  return {{"Llama-3-70B", llama}, {"GPT-OSS-120B", gpt_oss}, {"DeepSeek-V3", deepseek_v3_layer()}};
}

}  // namespace ptrain::support
