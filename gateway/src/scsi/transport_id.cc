#include "scsi/transport_id.h"

#include "base/hex.h"
#include "base/limits.h"

namespace sluice::scsi {
namespace {

constexpr uint8_t kIscsi = 0x05;
constexpr size_t kMinAdditional = 20;  // SPC-5 §7.6.4.6
constexpr std::string_view kIsidSeparator = ",i,0x";

// 1 to 12 hexadecimal digits, the last ones of the ISID.
bool parse_isid(std::string_view digits, std::array<uint8_t, 6>* isid) {
  if (digits.empty() || digits.size() > 12) return false;
  uint64_t value = 0;
  for (const char c : digits) {
    const int digit = hex_value(c);
    if (digit < 0) return false;
    value = value << 4 | static_cast<uint64_t>(digit);
  }
  store_be48(isid->data(), value);
  return true;
}

}  // namespace

Outcome<TransportId> parse_transport_id(ByteView data, uint16_t offset, size_t* used) {
  const auto bad = [offset](size_t at, int bit = -1) {
    return Sense::invalid_field_in_parameter_list(static_cast<uint16_t>(offset + at), bit);
  };
  if (data.size() < 4) return bad(0);
  const uint8_t format = data[0] >> 6;
  if ((data[0] & 0x0f) != kIscsi) return bad(0, 3);
  if (format > 1) return bad(0, 7);
  const size_t additional = load_be16(&data[2]);
  if (additional < kMinAdditional || additional % 4 != 0 || additional > data.size() - 4) {
    return bad(2, 7);
  }
  *used = 4 + additional;

  std::string_view text = as_text(data.subspan(4, additional));
  const size_t end = text.find('\0');
  if (end == std::string_view::npos) return bad(4);
  text = text.substr(0, end);
  TransportId id;
  if (format == 1) {
    const size_t separator = text.find(kIsidSeparator);
    if (separator == std::string_view::npos) return bad(4);
    const std::string_view digits = text.substr(separator + kIsidSeparator.size());
    if (!parse_isid(digits, &id.isid)) return bad(4 + separator + kIsidSeparator.size());
    id.has_isid = true;
    text = text.substr(0, separator);
  }
  if (text.empty() || text.size() > limits::kMaxIscsiName) return bad(4);
  id.name = text;
  return id;
}

void write_transport_id(std::string_view name, const std::array<uint8_t, 6>& isid,
                        ResponseWriter& writer) {
  const size_t start = writer.full();
  writer.u8(0x40 | kIscsi);
  writer.u8(0);
  writer.u16(0);
  writer.bytes(as_bytes(name));
  writer.bytes(as_bytes(kIsidSeparator));
  for (const uint8_t byte : isid) {
    for (const char digit : hex_digits(byte)) writer.u8(static_cast<uint8_t>(digit));
  }
  writer.u8(0);
  writer.align(4, start);
  if (writer.full() - start < 4 + kMinAdditional) {
    writer.zeros(4 + kMinAdditional - (writer.full() - start));
  }
  writer.set_u16(start + 2, static_cast<uint16_t>(writer.full() - start - 4));
}

}  // namespace sluice::scsi
