// Texts that an administrator writes: the configuration file, the CHAP file, a backend
// specification, an address on the command line. The first byte of an input selects one, the rest
// is the text. A refusal must have a reason. A valid size must be unchanged after formatting and
// parsing.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backend/size_text.h"
#include "backend/spec.h"
#include "config/parse.h"

namespace {

using namespace sluice;

void require(bool holds) {
  if (!holds) std::abort();
}

// Every refusal has a printable reason of one or more lines.
template <typename T>
void require_reason(const Result<T>& result) {
  if (!result) require(!result.error().empty());
}

void sizes(const std::string& text) {
  const Result<uint64_t> size = backend::parse_size(text);
  require_reason(size);
  if (!size) return;
  const Result<uint64_t> again = backend::parse_size(backend::format_size(size.value()));
  require(again.ok() && again.value() == size.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const config::Source source{.file = "g.yaml", .text = text, .fault = {}};
  switch (data[0] % 6) {
    case 0:
      require_reason(config::parse_config(source));
      break;
    case 1:
      require_reason(config::parse_chap_file(source));
      break;
    case 2:
      require_reason(backend::parse_spec(text));
      break;
    case 3:
      sizes(text);
      break;
    case 4:
      require_reason(config::parse_portal(text));
      break;
    default:
      require_reason(config::parse_metrics(text));
      require_reason(config::parse_level(text));
  }
  return 0;
}
