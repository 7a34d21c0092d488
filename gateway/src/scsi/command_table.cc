#include "scsi/command_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "scsi/block_commands.h"
#include "scsi/command_rows.h"
#include "scsi/pass_through_commands.h"
#include "scsi/primary_commands.h"

namespace sluice::scsi {
namespace {

constexpr size_t kCount = std::size(rows::kPrimaryCommands) + std::size(rows::kBlockCommands) +
                          std::size(rows::kPassThroughCommands);

constexpr std::array<CommandInfo, kCount> join_rows() {
  std::array<CommandInfo, kCount> all{};
  auto end =
      std::copy(std::begin(rows::kPrimaryCommands), std::end(rows::kPrimaryCommands), all.begin());
  end = std::copy(std::begin(rows::kBlockCommands), std::end(rows::kBlockCommands), end);
  std::copy(std::begin(rows::kPassThroughCommands), std::end(rows::kPassThroughCommands), end);
  std::sort(all.begin(), all.end(), [](const CommandInfo& a, const CommandInfo& b) {
    return a.opcode != b.opcode ? a.opcode < b.opcode : a.service_action < b.service_action;
  });
  return all;
}

constexpr std::array<CommandInfo, kCount> kRows = join_rows();
constexpr uint8_t kNoEntry = 0xff;
static_assert(kCount < kNoEntry);

// The LUN field of SCSI-2 in byte 1 of every CDB. The gateway ignores it, and permits it for
// INQUIRY: Linux treats a target as SCSI-2 until the first scanned LUN has answered INQUIRY, and a
// host that scans single LUNs may begin with any.
constexpr uint8_t kLunOfScsi2 = 0xe0;

constexpr uint8_t passed_bits(const CommandInfo& info, const uint8_t* usage, size_t byte) {
  const bool lun = info.operation == Operation::kInquiry && byte == 1;
  return static_cast<uint8_t>(usage[byte] | (lun ? kLunOfScsi2 : 0));
}

// A CDB is checked as two words: forbidden bits are those its command doesn't use. Bytes beyond
// the command's length are padding and may hold anything.
struct Words {
  uint64_t low = 0;   // bytes 0-7, in memory order
  uint64_t high = 0;  // bytes 8-15
};

constexpr Words to_words(const std::array<uint8_t, 16>& bytes) {
  return std::bit_cast<Words>(bytes);
}

constexpr Words forbidden_bits(const CommandInfo& info) {
  std::array<uint8_t, 16> bytes{};
  for (size_t i = 0; i < info.cdb_length && i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(~passed_bits(info, info.usage, i));
  }
  return to_words(bytes);
}

// Opcode -> entry, or -> row of entries by service action.
struct Index {
  std::array<uint8_t, 256> plain{};                  // entry
  std::array<uint8_t, 256> family{};                 // row of `actions`
  std::array<std::array<uint8_t, 32>, 8> actions{};  // entry
  std::array<Words, kCount> forbidden{};
};

constexpr Index make_index() {
  Index index;
  index.plain.fill(kNoEntry);
  index.family.fill(kNoEntry);
  for (auto& row : index.actions) row.fill(kNoEntry);
  uint8_t families = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const CommandInfo& info = kRows[i];
    index.forbidden[i] = forbidden_bits(info);
    if (info.service_action == kNoServiceAction) {
      index.plain[info.opcode] = static_cast<uint8_t>(i);
      continue;
    }
    if (index.family[info.opcode] == kNoEntry) index.family[info.opcode] = families++;
    index.actions[index.family[info.opcode]][info.service_action] = static_cast<uint8_t>(i);
  }
  return index;
}

constexpr Index kIndex = make_index();

uint8_t entry_of(uint8_t opcode, uint16_t service_action) {
  const uint8_t plain = kIndex.plain[opcode];
  if (plain != kNoEntry) return plain;
  const uint8_t family = kIndex.family[opcode];
  if (family == kNoEntry || service_action > 0x1f) return kNoEntry;
  return kIndex.actions[family][service_action];
}

// Field pointer at the most significant forbidden bit that is set (SPC-5 §4.4.2.4.2).
Sense reserved_bit(ByteView cdb, const CommandInfo& info, const uint8_t* usage) {
  for (size_t i = 0; i < info.cdb_length; ++i) {
    const auto wrong = static_cast<uint8_t>(cdb[i] & ~passed_bits(info, usage, i));
    if (wrong != 0) {
      return Sense::invalid_field_in_cdb(static_cast<uint16_t>(i), std::bit_width(wrong) - 1);
    }
  }
  return Sense::invalid_field_in_cdb(0);
}

bool uses_provisioning_bits(Operation operation) {
  return operation == Operation::kWriteSame || operation == Operation::kUnmap;
}

}  // namespace

std::span<const CommandInfo> command_table() { return kRows; }

bool supported(const CommandInfo& info, const Support& support) {
  switch (info.operation) {
    case Operation::kUnmap:
      return support.unmap;
    case Operation::kWriteAtomic:
      return support.write_atomic;
    case Operation::kExtendedCopy:
    case Operation::kReceiveCopyResults:
      return support.third_party_copy;
    case Operation::kPopulateToken:
    case Operation::kWriteUsingToken:
    case Operation::kReceiveRodTokenInformation:
      return support.tokens;
    case Operation::kPassThrough:
      return support.pass_through;
    default:
      return true;
  }
}

uint16_t flags_of(const CommandInfo& info, ByteView cdb) {
  switch (info.operation) {
    case Operation::kStartStopUnit:
      if ((cdb[4] & 0xf1) == 0x01) return info.flags | rows::kAnyPr | kAllowedUnderReserve6;
      return info.flags;
    case Operation::kVerify:
      if ((cdb[1] & 0x06) == 0) return info.flags & static_cast<uint16_t>(~kDataOut);
      return info.flags;
    case Operation::kWriteSame:
      if (info.cdb_length == 16 && (cdb[1] & 0x01) != 0) {
        return info.flags & static_cast<uint16_t>(~kDataOut);
      }
      return info.flags;
    default:
      return info.flags;
  }
}

void usage_of(const CommandInfo& info, const Support& support, uint8_t (&usage)[16]) {
  std::memcpy(usage, info.usage, sizeof usage);
  if (info.operation == Operation::kWriteSame) {
    if (!support.write_same_unmap) usage[1] &= static_cast<uint8_t>(~0x18);  // UNMAP, ANCHOR
    if (!support.anchor) usage[1] &= static_cast<uint8_t>(~0x10);
  } else if (info.operation == Operation::kUnmap) {
    if (!support.anchor) usage[1] &= static_cast<uint8_t>(~0x01);
  }
}

const CommandInfo* lookup_command(uint8_t opcode, uint16_t service_action) {
  const uint8_t entry = entry_of(opcode, service_action);
  return entry == kNoEntry ? nullptr : &kRows[entry];
}

const CommandInfo* find_command(ByteView cdb, Sense* sense) {
  const uint8_t opcode = cdb[0];
  const uint8_t action = cdb.size() > 1 ? cdb[1] & 0x1f : 0;
  const uint8_t entry = entry_of(opcode, action);
  if (entry == kNoEntry) [[unlikely]] {
    *sense = kIndex.family[opcode] == kNoEntry ? Sense::make(SenseKey::kIllegalRequest, 0x20, 0x00)
                                               : Sense::invalid_field_in_cdb(1, 4);
    return nullptr;
  }
  const CommandInfo& info = kRows[entry];
  if (cdb.size() < info.cdb_length) [[unlikely]] {
    *sense = Sense::invalid_field_in_cdb(static_cast<uint16_t>(cdb.size()));
    return nullptr;
  }
  Words words;
  if (cdb.size() >= sizeof words) [[likely]] {
    std::memcpy(&words, cdb.data(), sizeof words);
  } else {
    std::memcpy(&words, cdb.data(), cdb.size());
  }
  const Words& forbidden = kIndex.forbidden[entry];
  if (((words.low & forbidden.low) | (words.high & forbidden.high)) != 0) [[unlikely]] {
    *sense = reserved_bit(cdb, info, info.usage);
    return nullptr;
  }
  return &info;
}

const CommandInfo* find_command(ByteView cdb, const Support& support, Sense* sense) {
  const CommandInfo* info = find_command(cdb, sense);
  if (info == nullptr) return nullptr;
  if (!supported(*info, support)) [[unlikely]] {
    // An opcode none of whose service actions is left doesn't exist for this unit.
    bool any = false;
    for (const CommandInfo& other : kRows) {
      any = any || (other.opcode == info->opcode && supported(other, support));
    }
    *sense = any ? Sense::invalid_field_in_cdb(1, 4)
                 : Sense::make(SenseKey::kIllegalRequest, 0x20, 0x00);
    return nullptr;
  }
  if (uses_provisioning_bits(info->operation)) {
    uint8_t usage[16];
    usage_of(*info, support, usage);
    if ((cdb[1] & ~usage[1]) != 0) {
      *sense = reserved_bit(cdb, *info, usage);
      return nullptr;
    }
  }
  return info;
}

}  // namespace sluice::scsi
