#include "scsi/unmap_list.h"

#include <algorithm>

namespace sluice::scsi {
namespace {

constexpr size_t kHeader = 8;
constexpr size_t kDescriptor = 16;

Sense list_length_error() { return Sense::make(SenseKey::kIllegalRequest, 0x1a, 0x00); }

}  // namespace

BlockExtent UnmapList::at(size_t index) const {
  const uint8_t* d = &descriptors_[index * kDescriptor];
  return {load_be64(d), load_be32(d + 8)};
}

Outcome<UnmapList> parse_unmap(ByteView cdb, const UnmapBounds& bounds, ByteView data) {
  const size_t list_length = load_be16(&cdb[7]);
  if (list_length == 0) return UnmapList({});
  if (list_length < kHeader || data.size() < list_length) return list_length_error();
  data = data.first(list_length);
  const size_t descriptors = load_be16(&data[2]);
  if (kHeader + descriptors > list_length) return list_length_error();
  // UNMAP DATA LENGTH counts what follows it, the descriptors included.
  if (load_be16(&data[0]) < descriptors + 6) {
    return Sense::invalid_field_in_parameter_list(0, 7);
  }
  // A trailing part of a descriptor is ignored (SBC-4 §5.36.2).
  const UnmapList list(data.subspan(kHeader, descriptors - descriptors % kDescriptor));
  if (list.size() > bounds.max_descriptors) return Sense::invalid_field_in_parameter_list(2, 7);
  uint64_t total = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const BlockExtent extent = list.at(i);
    if (extent.lba > bounds.blocks || extent.blocks > bounds.blocks - extent.lba) {
      return Sense::lba_out_of_range(std::max(extent.lba, bounds.blocks));
    }
    total += extent.blocks;
    if (total > bounds.max_blocks) {
      const size_t at = kHeader + i * kDescriptor + 8;
      return Sense::invalid_field_in_parameter_list(static_cast<uint16_t>(at), 7);
    }
  }
  return list;
}

}  // namespace sluice::scsi
