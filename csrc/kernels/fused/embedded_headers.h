// Files of this source tree as text, for compiling at run time; csrc/embed_headers.cmake writes them during the build.
#pragma once

namespace rooflab::kernels {

struct EmbeddedHeader {
  const char* name;  // as it is included: "kernels/elementwise/functors.h"
  const char* text;
};
extern const EmbeddedHeader kEmbeddedHeaders[10];

}  // namespace rooflab::kernels
