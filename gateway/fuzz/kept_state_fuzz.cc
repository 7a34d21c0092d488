// State on disks that others may have written: a volume's record, a device's label, the desired
// state. The first byte of an input selects one, the rest is the text without its checksum. The
// text is parsed with a correct checksum, which a fuzzer would not find, and without one. Valid
// state must be unchanged after writing and reading it again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/record_text.h"
#include "control/desired.h"
#include "control/desired_file.h"
#include "control/local/device_label.h"
#include "control/local/record.h"

namespace {

using namespace sluice;
using namespace sluice::control;

void require(bool holds) {
  if (!holds) std::abort();
}

// A record with its reservations behind a line "reservations" without a size: they contain a
// checksum of their own.
std::string with_reservations(std::string_view text) {
  constexpr std::string_view kLine = "\nreservations\n";
  const size_t at = text.find(kLine);
  if (at == std::string_view::npos) return seal(std::string(text));
  const std::string kept = seal(std::string(text.substr(at + kLine.size())));
  return seal(std::string(text.substr(0, at)) + "\nreservations " + std::to_string(kept.size()) +
              '\n' + kept);
}

// The volume that a record names, so that parsing continues to its end.
std::string volume_in(std::string_view text) {
  constexpr std::string_view kName = "\nvolume ";
  const size_t at = text.find(kName);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + kName.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

void record(const std::string& text) {
  const std::string volume = volume_in(text);
  const Result<Record> read = parse_record(text, volume, "r");
  if (!read) return require(!read.error().empty());
  const Result<Record> again = parse_record(format_record(read.value()), volume, "r");
  require(again.ok() && again.value() == read.value());
}

void label(const std::string& text) {
  const std::optional<DeviceLabel> read = parse_label(text);
  if (read) require(parse_label(format_label(*read)) == read);
}

// A full update needs a correct digest; otherwise it is refused and the held state stays.
void desired(std::string_view body) {
  Desired state;
  const std::string text = seal("sluice-desired 2\n" + std::string(body));
  const Result<void> read = parse_desired(text, "d", &state, "gw");
  if (!read) require(!read.error().empty() && state.held().version == 0);
  if (!read) return;
  Desired again;
  require(parse_desired(format_desired(state.held()), "d", &again, "gw").ok());
  require(again.digest() == state.digest());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      record(with_reservations(text));
      break;
    case 1:
      label(seal(text));
      break;
    case 2:
      desired(text);
      break;
    default:
      record(text);
      label(text);
  }
  return 0;
}
