#include "passthrough/nvme_identify.h"

#include <cstring>

namespace sluice::passthrough {
namespace {

// Little-endian, as everything in NVMe.
template <class T>
T load_le(const uint8_t* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
  return value;
}

// A power of two times the smallest page; 0 and what overflows: no limit.
uint64_t pages(uint8_t exponent, uint64_t min_page) {
  return exponent == 0 || exponent > 40 ? 0 : min_page << exponent;
}

std::string text(const uint8_t* p, size_t size) {
  std::string s;
  for (size_t i = 0; i < size; ++i)
    s += p[i] >= 0x20 && p[i] < 0x7f ? static_cast<char>(p[i]) : ' ';
  s.erase(s.find_last_not_of(' ') + 1);
  return s;
}

}  // namespace

Result<NvmeController> parse_controller(ByteView identify, uint64_t min_page) {
  if (identify.size() < kIdentifyBytes) return Error{"Identify Controller is too short"};
  const uint8_t* p = identify.data();
  const auto oncs = load_le<uint16_t>(p + 520);
  NvmeController c;
  c.model = text(p + 24, 40);
  c.max_transfer = pages(p[77], min_page);
  c.deallocates = (oncs & 0x04) != 0;
  c.writes_zeroes = (oncs & 0x08) != 0;
  c.volatile_cache = (p[525] & 0x01) != 0;
  return c;
}

uint64_t parse_write_zeroes_limit(ByteView identify, uint64_t min_page) {
  return identify.size() < kIdentifyBytes ? 0 : pages(identify[1], min_page);
}

Result<NvmeNamespace> parse_namespace(ByteView identify) {
  if (identify.size() < kIdentifyBytes) return Error{"Identify Namespace is too short"};
  const uint8_t* p = identify.data();
  NvmeNamespace n;
  n.blocks = load_le<uint64_t>(p);
  if (n.blocks == 0) return Error{"the namespace has no blocks; attach an active one"};
  const unsigned formats = p[25] + 1u;
  unsigned format = p[26] & 0x0f;
  if (formats > 16) format |= (p[26] >> 1) & 0x30;
  if (format >= formats || format >= 64) {
    return Error{"the namespace names format " + std::to_string(format) + " of " +
                 std::to_string(formats) + "; the drive's Identify data is bad"};
  }
  const uint8_t* lbaf = p + 128 + 4 * static_cast<size_t>(format);
  const auto metadata = load_le<uint16_t>(lbaf);
  if (metadata != 0 || (p[29] & 0x07) != 0) {
    return Error{"is formatted with " + std::to_string(metadata) +
                 " bytes of metadata for each block; format it without (nvme format --lbaf=)"};
  }
  if (lbaf[2] != 9 && lbaf[2] != 12) {
    return Error{"has blocks of 2^" + std::to_string(lbaf[2]) +
                 " bytes; format it with 512 or 4096 (nvme format --lbaf=)"};
  }
  n.block_size = 1u << lbaf[2];
  if (n.blocks > uint64_t{INT64_MAX} / n.block_size) {
    return Error{"claims " + std::to_string(n.blocks) +
                 " blocks, beyond 8EiB; the drive's Identify data is bad"};
  }
  n.thin = (p[24] & 0x01) != 0;
  n.reads_zeros = (p[33] & 0x07) == 0x01;
  n.zeroes_deallocate = (p[33] & 0x08) != 0;
  n.write_protected = (p[99] & 0x01) != 0;
  return n;
}

}  // namespace sluice::passthrough
