#include "scsi/third_party_copy.h"

#include "scsi/response_writer.h"
#include "scsi/rod_token.h"
#include "scsi/xcopy_list.h"

namespace sluice::scsi {
namespace {

constexpr uint8_t kExtendedCopyOpcode = 0x83;
constexpr uint8_t kReceiveCopyOpcode = 0x84;

// Third-party copy descriptors are multiples of 4 bytes long (SPC-5 §7.7.18.1).
size_t open(ResponseWriter& w, uint16_t type) {
  w.u16(type);
  w.u16(0);
  return w.full();
}
void close(ResponseWriter& w, size_t start) {
  w.align(4, start);
  w.set_u16(start - 2, static_cast<uint16_t>(w.full() - start));
}

// Block Device ROD Token Limits (SBC-4 §6.6.8.3): what Windows reads before it offloads a copy.
void write_token_limits(ResponseWriter& w, const ThirdPartyCopyLimits& limits) {
  const size_t at = open(w, 0x0000);
  w.zeros(6);
  w.u16(limits.max_ranges);
  w.u32(limits.max_inactivity_seconds);
  w.u32(limits.default_inactivity_seconds);
  w.u64(limits.max_token_blocks);
  w.u64(limits.optimal_token_blocks);
  close(w, at);
}

void write_commands_of(ResponseWriter& w, uint8_t opcode, const Support& support) {
  const size_t at = w.full();
  uint8_t actions = 0;
  for (const CommandInfo& info : command_table()) {
    if (info.opcode != opcode || !supported(info, support)) continue;
    if (actions++ == 0) {
      w.u8(opcode);
      w.u8(0);
    }
    w.u8(static_cast<uint8_t>(info.service_action));
  }
  if (actions > 0) w.set_u8(at + 1, actions);
}

// Supported Commands (SPC-5 §7.7.18.4), read off the command table.
void write_supported_commands(ResponseWriter& w, const Support& support) {
  const size_t at = open(w, 0x0001);
  w.u8(0);
  write_commands_of(w, kExtendedCopyOpcode, support);
  write_commands_of(w, kReceiveCopyOpcode, support);
  w.set_u8(at, static_cast<uint8_t>(w.full() - at - 1));
  close(w, at);
}

// Parameter Data (SPC-5 §7.7.18.5)
void write_parameter_data(ResponseWriter& w, const ThirdPartyCopyLimits& limits) {
  const size_t at = open(w, 0x0004);
  w.zeros(4);
  w.u16(limits.max_cscds);
  w.u16(limits.max_segments);
  w.u32(max_descriptor_list(limits));
  w.u32(0);  // MAXIMUM INLINE DATA LENGTH
  w.zeros(12);
  close(w, at);
}

// Supported Descriptors (SPC-5 §7.7.18.6), ascending.
void write_supported_descriptors(ResponseWriter& w) {
  const size_t at = open(w, 0x0008);
  w.u8(2);
  w.u8(0x02);  // block to block
  w.u8(0xe4);  // identification descriptor CSCD
  close(w, at);
}

// ROD Token Features (SPC-5 §7.7.18.9) with the block device features (SBC-4 §6.6.8.4).
void write_token_features(ResponseWriter& w, const ThirdPartyCopyLimits& limits) {
  const uint64_t block = limits.block_size;
  const size_t at = open(w, 0x0106);
  w.u8(0);  // REMOTE TOKENS: only tokens of this target are understood
  w.zeros(11);
  w.u32(limits.default_inactivity_seconds);  // MINIMUM TOKEN LIFETIME
  w.u32(limits.max_token_lifetime_seconds);
  w.u32(limits.max_inactivity_seconds);
  w.zeros(18);
  w.u16(48);
  w.u8(0x00);  // DESCRIPTOR FORMAT 0, PERIPHERAL DEVICE TYPE 00h
  w.u8(0);
  w.u16(0x2c);
  w.zeros(2);
  w.u16(0);  // OPTIMAL BLOCK ROD LENGTH GRANULARITY: none
  w.u64(limits.max_token_blocks * block);
  w.u64(limits.optimal_token_blocks * block);
  w.u64(limits.optimal_token_blocks * block);  // to token, per segment
  w.u64(limits.optimal_token_blocks * block);  // from token, per segment
  w.zeros(8);
  close(w, at);
}

void write_rod_type(ResponseWriter& w, uint32_t type, uint8_t flags, uint16_t preference) {
  w.u32(type);
  w.u8(flags);
  w.u8(0);
  w.u16(preference);
  w.zeros(56);
}

// Supported ROD Types (SPC-5 §7.7.18.10)
void write_rod_types(ResponseWriter& w) {
  constexpr uint8_t kTokenIn = 0x02;
  constexpr uint8_t kTokenOut = 0x01;
  const size_t at = open(w, 0x0108);
  w.u16(0);
  w.u16(2 * 64);
  write_rod_type(w, kRodTypeAccessUponReference, kTokenIn | kTokenOut, 0x8000);
  write_rod_type(w, kRodTypeZero, kTokenIn, 0);
  close(w, at);
}

// General Copy Operations (SPC-5 §7.7.18.11)
void write_general(ResponseWriter& w, const ThirdPartyCopyLimits& limits) {
  const size_t at = open(w, 0x8001);
  w.u32(limits.total_concurrent);
  w.u32(limits.max_concurrent);
  w.u32(limits.max_segment_bytes);
  w.u8(limits.granularity_log2);
  w.u8(0);
  w.zeros(18);
  close(w, at);
}

}  // namespace

size_t build_third_party_copy_page(uint8_t peripheral, const ThirdPartyCopyLimits& limits,
                                   const Support& support, MutableBytes out) {
  ResponseWriter w(out);
  w.u8(peripheral);
  w.u8(0x8f);
  w.u16(0);
  if (support.tokens) write_token_limits(w, limits);
  write_supported_commands(w, support);
  if (support.third_party_copy) {
    write_parameter_data(w, limits);
    write_supported_descriptors(w);
  }
  if (support.tokens) {
    write_token_features(w, limits);
    write_rod_types(w);
  }
  write_general(w, limits);
  w.set_u16(2, static_cast<uint16_t>(w.full() - 4));
  return w.size();
}

}  // namespace sluice::scsi
