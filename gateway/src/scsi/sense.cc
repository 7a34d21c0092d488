#include "scsi/sense.h"

#include <algorithm>

namespace sluice::scsi {
namespace {

constexpr uint8_t kValid = 0x80;

// The three bytes of sense-key specific information, the same in both formats (SPC-5 §4.4.2.4).
void put_specific(const Sense& sense, uint8_t* out) {
  uint8_t first = 0x80;  // SKSV
  switch (sense.specific) {
    case Sense::Specific::kNone:
      return;
    case Sense::Specific::kFieldPointer:
      if (sense.in_cdb) first |= 0x40;  // C/D
      break;
    case Sense::Specific::kSegmentPointer:
      first |= 0x20;  // SD: the pointer counts from the start of the segment descriptor
      break;
    case Sense::Specific::kProgress:
      break;
  }
  if (sense.bit_valid && sense.specific != Sense::Specific::kProgress) {
    first |= static_cast<uint8_t>(0x08 | (sense.bit & 0x07));  // BPV, BIT POINTER
  }
  out[0] = first;
  store_be16(out + 1, sense.pointer);
}

constexpr size_t kFixedBytes = 18;

Sense sense_of(const CopyCause& cause) {
  Sense sense = Sense::make(cause.key, cause.asc, cause.ascq);
  sense.has_information = cause.has_information;
  sense.information = cause.information;
  return sense;
}

size_t encode_fixed(const Sense& sense, uint8_t* out);
size_t encode_descriptors(const Sense& sense, uint8_t* out);

// SPC-5 §5.18.7.4: bytes 8 and 9 say where the status byte of the source and of the destination is,
// with their sense data behind it.
size_t append_cause(const CopyCause& cause, uint8_t* out) {
  size_t end = kFixedBytes;
  out[cause.party == CopyParty::kSource ? 8 : 9] = kFixedBytes;
  out[end++] = static_cast<uint8_t>(cause.status);
  if (cause.key != SenseKey::kNoSense) end += encode_fixed(sense_of(cause), out + end);
  out[7] = static_cast<uint8_t>(end - 8);
  return end;
}

// The forwarded sense data descriptor (SPC-5 §4.4.2.7).
size_t forwarded_descriptor(const CopyCause& cause, uint8_t* out) {
  out[0] = 0x0c;
  out[2] = cause.party == CopyParty::kSource ? 1 : 2;  // SENSE DATA SOURCE
  out[3] = static_cast<uint8_t>(cause.status);
  size_t end = 4;
  if (cause.key != SenseKey::kNoSense) end += encode_descriptors(sense_of(cause), out + end);
  out[1] = static_cast<uint8_t>(end - 2);
  return end;
}

// SPC-5 §4.4.3. What doesn't fit 32 bits is left out rather than cut: VALID stays 0.
size_t encode_fixed(const Sense& sense, uint8_t* out) {
  out[0] = 0x70;
  if (sense.has_information && sense.information <= UINT32_MAX) {
    out[0] |= kValid;
    store_be32(out + 3, static_cast<uint32_t>(sense.information));
  }
  out[2] = static_cast<uint8_t>(sense.key);
  out[7] = 10;  // ADDITIONAL SENSE LENGTH
  if (sense.has_command_specific && sense.command_specific <= UINT32_MAX) {
    store_be32(out + 8, static_cast<uint32_t>(sense.command_specific));
  }
  out[12] = sense.asc;
  out[13] = sense.ascq;
  put_specific(sense, out + 15);
  if (sense.cause.party == CopyParty::kNone) return kFixedBytes;
  return append_cause(sense.cause, out);
}

// SPC-5 §4.4.2
size_t encode_descriptors(const Sense& sense, uint8_t* out) {
  out[0] = 0x72;
  out[1] = static_cast<uint8_t>(sense.key);
  out[2] = sense.asc;
  out[3] = sense.ascq;
  size_t at = 8;
  if (sense.has_information) {
    out[at] = 0x00;
    out[at + 1] = 0x0a;
    out[at + 2] = kValid;
    store_be64(out + at + 4, sense.information);
    at += 12;
  }
  if (sense.has_command_specific) {
    out[at] = 0x01;
    out[at + 1] = 0x0a;
    store_be64(out + at + 4, sense.command_specific);
    at += 12;
  }
  if (sense.specific != Sense::Specific::kNone) {
    out[at] = 0x02;
    out[at + 1] = 0x06;
    put_specific(sense, out + at + 4);
    at += 8;
  }
  if (sense.cause.party != CopyParty::kNone) at += forwarded_descriptor(sense.cause, out + at);
  out[7] = static_cast<uint8_t>(at - 8);
  return at;
}

}  // namespace

size_t encode(const Sense& sense, bool descriptor_format, std::span<uint8_t, kMaxSenseBytes> out) {
  std::fill(out.begin(), out.end(), uint8_t{0});
  return descriptor_format ? encode_descriptors(sense, out.data())
                           : encode_fixed(sense, out.data());
}

}  // namespace sluice::scsi
