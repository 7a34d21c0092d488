#include "iscsi/forwarding_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "iscsi/login/text.h"

namespace sluice::iscsi {
namespace {

constexpr uint32_t kAhsLength = 17;  // the reserved byte, token and epoch
constexpr size_t kItems = 9;

// A decimal number within [low, high].
template <class T>
bool take(std::string_view text, uint64_t low, uint64_t high, T* out) {
  const std::optional<uint64_t> number = parse_number(text);
  if (!number || *number < low || *number > high) return false;
  *out = static_cast<T>(*number);
  return true;
}

bool take_incarnation(std::string_view text, std::string* out) {
  if (text.empty() || text.size() > kMaxIncarnation) return false;
  *out = text;
  return true;
}

}  // namespace

std::string host_age_text(Nanos age) {
  return std::to_string((std::clamp<Nanos>(age, 0, kMaxHostAge) + kMillisecond - 1) / kMillisecond);
}

Result<Nanos> parse_host_age(std::string_view text) {
  const std::optional<uint64_t> milliseconds = parse_number(text);
  if (!milliseconds) return Error{"X-dev.sluice.HostAge is malformed"};
  return static_cast<Nanos>(std::min<uint64_t>(*milliseconds, kMaxHostAge / kMillisecond)) *
         kMillisecond;
}

std::string origin_text(const Origin& o) {
  return fmt::format("{},{},{},{},{},{},{},{},{}", kForwardingVersion, o.gateway, o.incarnation,
                     o.tpgt, o.relative_port, o.nexus, o.read_only ? "ro" : "rw", o.owner,
                     o.owner_incarnation);
}

Result<Origin> parse_origin(std::string_view text) {
  const std::vector<std::string_view> items = split_list(text);
  unsigned version = 0;
  if (items.empty() || !take(items[0], 0, UINT16_MAX, &version)) {
    return Error{"X-dev.sluice.Origin is malformed"};
  }
  if (version != kForwardingVersion) {
    return Error{fmt::format(
        "X-dev.sluice.Origin has version {}, this gateway speaks {}; upgrade the older gateway",
        version, kForwardingVersion)};
  }
  Origin o;
  const bool whole =
      items.size() == kItems && take(items[1], 1, UINT16_MAX, &o.gateway) &&
      take_incarnation(items[2], &o.incarnation) && take(items[3], 0, UINT16_MAX, &o.tpgt) &&
      take(items[4], 1, UINT16_MAX, &o.relative_port) && take(items[5], 0, UINT64_MAX, &o.nexus) &&
      (items[6] == "rw" || items[6] == "ro") && take(items[7], 1, UINT16_MAX, &o.owner) &&
      take_incarnation(items[8], &o.owner_incarnation);
  if (!whole) return Error{"X-dev.sluice.Origin is malformed"};
  o.read_only = items[6] == "ro";
  return o;
}

void store_forwarded(const Forwarded& forwarded, uint8_t* ahs) {
  store_be16(ahs, kAhsLength);
  ahs[2] = kForwardedAhs;
  ahs[3] = 0;
  store_be64(ahs + 4, forwarded.token);
  store_be64(ahs + 12, forwarded.epoch);
}

bool load_forwarded(ByteView ahs, uint32_t length, Forwarded* out) {
  if (length != kAhsLength || ahs.size() < kForwardedAhsSize) return false;
  out->token = load_be64(&ahs[4]);
  out->epoch = load_be64(&ahs[12]);
  return out->epoch != 0;
}

}  // namespace sluice::iscsi
