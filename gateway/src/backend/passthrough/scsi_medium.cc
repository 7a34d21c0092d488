#include "passthrough/scsi_medium.h"

#include <algorithm>

namespace sluice::passthrough {
namespace {

constexpr uint8_t kCachingPage = 0x08;

std::string text(ByteView data, size_t at, size_t size) {
  std::string s;
  for (size_t i = at; i < at + size && i < data.size(); ++i) {
    s += data[i] >= 0x20 && data[i] < 0x7f ? static_cast<char>(data[i]) : ' ';
  }
  s.erase(s.find_last_not_of(' ') + 1);
  return s;
}

// Of a page of vital product data: what it says it is, without its header.
ByteView page_of(ByteView data, uint8_t page) {
  if (data.size() < 4 || data[1] != page) return {};
  const size_t length = load_be16(data.data() + 2);
  return data.first(std::min(data.size(), 4 + length));
}

Result<void> take_capacity(uint64_t last, uint32_t block_size, ScsiMedium& medium) {
  if (block_size != 512 && block_size != 4096) {
    return Error{"has logical blocks of " + std::to_string(block_size) +
                 " bytes; format it with 512 or 4096 (sg_format)"};
  }
  if (last >= uint64_t{INT64_MAX} / block_size) {
    return Error{"claims " + std::to_string(last) +
                 " as its last block, beyond 8EiB; the device's capacity data is bad"};
  }
  medium.blocks = last + 1;
  medium.block_size = block_size;
  return {};
}

}  // namespace

Result<std::string> parse_inquiry(ByteView data) {
  if (data.size() < 36) return Error{"answers INQUIRY too shortly; check the device"};
  const unsigned qualifier = data[0] >> 5;
  const unsigned type = data[0] & 0x1f;
  if (qualifier != 0) return Error{"has no medium connected; check the device"};
  if (type != 0) {
    return Error{"is of peripheral device type " + std::to_string(type) +
                 ", no disk (0); only disks can be exported"};
  }
  return text(data, 8, 8) + " " + text(data, 16, 16);
}

Result<void> parse_capacity16(ByteView data, ScsiMedium& medium) {
  if (data.size() < 12) return Error{"answers READ CAPACITY(16) too shortly; check the device"};
  if (data.size() >= 16) {
    medium.thin = (data[14] & 0x80) != 0;
    medium.reads_zeros = (data[14] & 0x40) != 0;
  }
  return take_capacity(load_be64(data.data()), load_be32(data.data() + 8), medium);
}

Result<void> parse_capacity10(ByteView data, ScsiMedium& medium) {
  if (data.size() < 8) return Error{"answers READ CAPACITY(10) too shortly; check the device"};
  const uint32_t last = load_be32(data.data());
  if (last == UINT32_MAX)
    return Error{"is larger than READ CAPACITY(10) can say, and refuses (16)"};
  return take_capacity(last, load_be32(data.data() + 4), medium);
}

uint32_t discard_granularity(const ScsiMedium& medium) {
  const uint64_t bytes = uint64_t{medium.unmap_granularity} * medium.block_size;
  return bytes > UINT32_MAX ? 0 : static_cast<uint32_t>(bytes);
}

bool lists_page(ByteView data, uint8_t page) {
  const ByteView pages = page_of(data, 0x00);
  return pages.size() > 4 && std::find(pages.begin() + 4, pages.end(), page) != pages.end();
}

void parse_block_limits(ByteView data, ScsiMedium& medium) {
  const ByteView page = page_of(data, 0xb0);
  if (page.size() >= 12) medium.max_transfer = load_be32(page.data() + 8);
  if (page.size() >= 36) {
    medium.max_unmap = load_be32(page.data() + 20);
    // No descriptor may be sent.
    if (load_be32(page.data() + 24) == 0) medium.max_unmap = 0;
    medium.unmap_granularity = std::max(1u, load_be32(page.data() + 28));
    const uint32_t alignment = load_be32(page.data() + 32);
    if ((alignment & 0x80000000) != 0) medium.unmap_alignment = alignment & 0x7fffffff;
  }
  if (page.size() >= 44) medium.max_write_same = load_be64(page.data() + 36);
}

void parse_characteristics(ByteView data, ScsiMedium& medium) {
  const ByteView page = page_of(data, 0xb1);
  // 0: not reported, 1: non-rotating, else revolutions per minute.
  if (page.size() >= 6) medium.rotational = load_be16(page.data() + 4) > 1;
}

void parse_provisioning(ByteView data, ScsiMedium& medium) {
  const ByteView page = page_of(data, 0xb2);
  if (page.size() < 6) return;
  medium.unmap = (page[5] & 0x80) != 0;
  medium.write_same_unmap = (page[5] & 0x40) != 0;
}

void parse_caching(ByteView data, ScsiMedium& medium) {
  if (data.size() < 8) return;
  medium.write_protected = (data[3] & 0x80) != 0;
  medium.fua = (data[3] & 0x10) != 0;
  const size_t at = 8 + size_t{load_be16(data.data() + 6)};
  if (data.size() < at + 3 || (data[at] & 0x3f) != kCachingPage) return;
  medium.volatile_cache = (data[at + 2] & 0x04) != 0;
}

}  // namespace sluice::passthrough
