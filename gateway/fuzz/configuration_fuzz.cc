// What an administrator writes: the configuration file, the CHAP file, a backend's text, an address
// of the command line. An input's first byte chooses, the rest is the text. A text that is refused
// says why; a size that is understood reads the same when it is written out again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backend/spec.h"
#include "config/parse.h"

namespace {

using namespace sluice;

void require(bool holds) {
  if (!holds) std::abort();
}

// Whatever is refused is refused with a reason that can be printed on a line or some.
template <typename T>
void told(const Result<T>& result) {
  if (!result) require(!result.error().empty());
}

void sizes(const std::string& text) {
  const Result<uint64_t> size = backend::parse_size(text);
  told(size);
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
      told(config::parse_config(source));
      break;
    case 1:
      told(config::parse_chap_file(source));
      break;
    case 2:
      told(backend::parse_spec(text));
      break;
    case 3:
      sizes(text);
      break;
    case 4:
      told(config::parse_portal(text));
      break;
    default:
      told(config::parse_metrics(text));
      told(config::parse_level(text));
  }
  return 0;
}
