#include "commands/media_range.h"

namespace sluice::lun {
namespace {

using scsi::Sense;

// The common checks of commands on a range of blocks. False: *sense has the reason.
bool decode(Unit& unit, Command& command, Sense* sense) {
  command.range = scsi::decode_block_range(*command.info, command.full_cdb());
  if (command.range.protect != 0) {  // not formatted with protection information
    *sense = Sense::invalid_field_in_cdb(1, 7);
    return false;
  }
  return range_fits(unit, command.range.lba, command.range.blocks, sense);
}

bool within_transfer_limit(const Unit& unit, const Command& command, Sense* sense) {
  if (command.range.blocks <= unit.limits().max_transfer) [[likely]]
    return true;
  *sense = Sense::invalid_field_in_cdb(command.range.blocks_at);
  return false;
}

// No blocks: GOOD at once (*sense stays NO SENSE).
bool want_hold(Command& command, bool exclusive) {
  if (command.range.blocks == 0) return false;
  command.wants_hold = true;
  command.hold.first = command.range.lba;
  command.hold.last = command.range.lba + command.range.blocks - 1;
  command.hold.exclusive = exclusive;
  return true;
}

void want_data(const Unit& unit, Command& command, uint64_t blocks) {
  command.data_out_wanted = static_cast<uint32_t>(blocks * unit.block_size());
}

// COMPARE AND WRITE and WRITE SAME are never executed in part: the announced length must equal the
// length in the CDB, otherwise initiator and target disagree about the command.
bool brings_exactly(const Command& command, uint64_t bytes, Sense* sense) {
  if (command.expected_data_out == bytes) return true;
  *sense = Sense::invalid_field_in_cdb(command.range.blocks_at);
  return false;
}

// INVALID FIELD IN COMMAND INFORMATION UNIT
Sense short_data_sense() { return Sense::make(scsi::SenseKey::kIllegalRequest, 0x0e, 0x03); }

// Whether the data that the initiator announces ends with a block. If it ends within one, the bytes
// after the last whole block would be acknowledged and lost, so nothing is written (FCP-4 permits
// this).
bool ends_with_a_block(const Unit& unit, const Command& command, Sense* sense) {
  const uint32_t announced = command.expected_data_out;
  if (announced >= command.data_out_wanted || announced % unit.block_size() == 0) [[likely]]
    return true;
  *sense = short_data_sense();
  return false;
}

}  // namespace

bool prepare_parameter_list(Unit& /*unit*/, Command& command, Sense* sense) {
  if (!(command.info->flags & scsi::kDataOut)) return true;
  command.data_out_wanted = scsi::allocation_length(*command.info, command.full_cdb());
  if (command.data_out_wanted > limits::kMaxParameterList) {
    // PARAMETER LIST LENGTH ERROR
    *sense = Sense::make(scsi::SenseKey::kIllegalRequest, 0x1a, 0x00);
    return false;
  }
  // A part of the list could have another meaning than the whole list.
  if (command.expected_data_out >= command.data_out_wanted) return true;
  *sense = short_data_sense();
  return false;
}

bool prepare_blocks_only(Unit& unit, Command& command, Sense* sense) {
  return decode(unit, command, sense);
}

bool prepare_read(Unit& unit, Command& command, Sense* sense) {
  return decode(unit, command, sense) && within_transfer_limit(unit, command, sense) &&
         want_hold(command, false);
}

bool prepare_write(Unit& unit, Command& command, Sense* sense) {
  if (!decode(unit, command, sense) || !within_transfer_limit(unit, command, sense)) return false;
  want_data(unit, command, command.range.blocks);
  return ends_with_a_block(unit, command, sense) && want_hold(command, true);
}

// SBC-4 §5.53: the length is limited, and start and length are multiples of the atomic size.
bool prepare_write_atomic(Unit& unit, Command& command, Sense* sense) {
  if (!prepare_write(unit, command, sense)) return false;
  const scsi::BlockLimits& limits = unit.limits();
  if (command.range.blocks > limits.max_atomic_transfer ||
      (limits.atomic_granularity && command.range.blocks % limits.atomic_granularity != 0)) {
    *sense = Sense::invalid_field_in_cdb(command.range.blocks_at);
    return false;
  }
  if (limits.atomic_alignment && command.range.lba % limits.atomic_alignment != 0) {
    *sense = Sense::invalid_field_in_cdb(command.range.lba_at);
    return false;
  }
  return true;
}

bool prepare_write_and_verify(Unit& unit, Command& command, Sense* sense) {
  // BYTCHK 10b is reserved; 11b, one block for all, is defined for VERIFY only (SBC-4 §5.54).
  if (!decode(unit, command, sense)) return false;
  if (command.range.bytchk > 1) {
    *sense = Sense::invalid_field_in_cdb(1, 2);
    return false;
  }
  return prepare_write(unit, command, sense);
}

bool prepare_verify(Unit& unit, Command& command, Sense* sense) {
  if (!decode(unit, command, sense)) return false;
  if (command.range.bytchk == 2) {
    *sense = Sense::invalid_field_in_cdb(1, 2);
    return false;
  }
  if (!within_transfer_limit(unit, command, sense)) return false;
  if (command.range.bytchk == 1) want_data(unit, command, command.range.blocks);
  if (command.range.bytchk == 3) want_data(unit, command, command.range.blocks ? 1 : 0);
  return ends_with_a_block(unit, command, sense) && want_hold(command, false);
}

bool prepare_write_same(Unit& unit, Command& command, Sense* sense) {
  if (!decode(unit, command, sense)) return false;
  const scsi::BlockRange& range = command.range;
  if (range.anchor) {  // VPD B2 ANC_SUP is 0
    *sense = Sense::invalid_field_in_cdb(1, 4);
    return false;
  }
  if (range.unmap && !unit.provisioning().write_same_unmap) {
    *sense = Sense::invalid_field_in_cdb(1, 3);
    return false;
  }
  // 0 means the rest of the medium; VPD B0 WSNZ reports that it is refused.
  if (range.blocks == 0 || range.blocks > unit.limits().max_write_same) {
    *sense = Sense::invalid_field_in_cdb(range.blocks_at);
    return false;
  }
  if (!range.ndob) want_data(unit, command, 1);
  if (!brings_exactly(command, command.data_out_wanted, sense)) return false;
  if (!want_hold(command, true)) return false;
  // The first piece; the handler holds the others later.
  command.hold.last = range.lba + piece_of(unit, range.lba, range.blocks) - 1;
  return true;
}

bool prepare_compare_and_write(Unit& unit, Command& command, Sense* sense) {
  if (!decode(unit, command, sense)) return false;
  if (command.range.blocks > unit.limits().max_compare_and_write) {
    *sense = Sense::invalid_field_in_cdb(command.range.blocks_at);
    return false;
  }
  // the data to compare, then the data to write
  want_data(unit, command, 2 * command.range.blocks);
  if (!brings_exactly(command, command.data_out_wanted, sense)) return false;
  return want_hold(command, true);
}

}  // namespace sluice::lun
