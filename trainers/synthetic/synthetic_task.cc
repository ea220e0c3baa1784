#include "trainers/synthetic/synthetic_task.h"

#include <ATen/CPUGeneratorImpl.h>

namespace hvdlite::trainers {

at::Generator GeneratorOf(const SyntheticTaskOptions& options) {
  return at::detail::createCPUGenerator(options.seed);
}

int64_t SizeOr(int64_t size, int64_t published) {
  return size != 0 ? size : published;
}

at::MemoryFormat MemoryFormatOf(const SyntheticTaskOptions& options) {
  return options.data_format == "NHWC" ? at::MemoryFormat::ChannelsLast
                                       : at::MemoryFormat::Contiguous;
}

}  // namespace hvdlite::trainers
