#include "scsi/cdb.h"

namespace sluice::scsi {
namespace {

// Byte 1 means something else in nearly every command (SBC-4 §5).
void decode_flags(Operation operation, uint8_t byte1, BlockRange* r) {
  switch (operation) {
    case Operation::kRead:
    case Operation::kWrite:
    case Operation::kWriteAtomic:
    case Operation::kCompareAndWrite:
    case Operation::kOrWrite:
      r->protect = byte1 >> 5;
      r->dpo = (byte1 & 0x10) != 0;
      r->fua = (byte1 & 0x08) != 0;
      break;
    case Operation::kVerify:
    case Operation::kWriteAndVerify:
      r->protect = byte1 >> 5;
      r->dpo = (byte1 & 0x10) != 0;
      r->bytchk = (byte1 >> 1) & 0x03;
      break;
    case Operation::kWriteSame:
      r->protect = byte1 >> 5;
      r->anchor = (byte1 & 0x10) != 0;
      r->unmap = (byte1 & 0x08) != 0;
      r->ndob = (byte1 & 0x01) != 0;
      break;
    case Operation::kPreFetch:
    case Operation::kSynchronizeCache:
      r->immed = (byte1 & 0x02) != 0;
      break;
    default:
      break;
  }
}

void decode_16(Operation operation, const uint8_t* cdb, BlockRange* r) {
  r->lba = load_be64(cdb + 2);
  r->group = cdb[14] & 0x3f;
  switch (operation) {
    case Operation::kCompareAndWrite:
      r->blocks = cdb[13];
      r->blocks_at = 13;
      break;
    case Operation::kWriteAtomic:
      r->blocks = load_be16(cdb + 12);
      r->blocks_at = 12;
      break;
    case Operation::kGetLbaStatus:  // a start only; bytes 10-13 are the allocation length
      r->group = 0;
      r->blocks_at = 2;
      break;
    default:
      r->blocks = load_be32(cdb + 10);
      r->blocks_at = 10;
      break;
  }
}

}  // namespace

BlockRange decode_block_range(const CommandInfo& info, ByteView view) {
  const uint8_t* cdb = view.data();
  BlockRange r;
  switch (info.cdb_length) {
    case 6:  // 21-bit LBA, and 0 means 256 blocks (SBC-4 §5.17)
      r.lba = load_be24(cdb + 1) & 0x1fffff;
      r.blocks = cdb[4] == 0 ? 256 : cdb[4];
      r.lba_at = 1;
      r.blocks_at = 4;
      return r;
    case 10:
      r.lba = load_be32(cdb + 2);
      r.blocks = load_be16(cdb + 7);
      r.blocks_at = 7;
      r.group = cdb[6] & 0x3f;
      break;
    case 12:
      r.lba = load_be32(cdb + 2);
      r.blocks = load_be32(cdb + 6);
      r.blocks_at = 6;
      r.group = cdb[10] & 0x3f;
      break;
    default:
      decode_16(info.operation, cdb, &r);
      break;
  }
  decode_flags(info.operation, cdb[1], &r);
  return r;
}

namespace {

uint32_t passed_length(const uint8_t* cdb) {
  switch (cdb[0]) {
    case 0x1c:
      return load_be16(cdb + 3);
    case 0x37:
      return load_be16(cdb + 7);
    case 0x3c:
      return load_be24(cdb + 6);
    case 0x9e:
      return load_be32(cdb + 10);
    default:  // a3h, b7h
      return load_be32(cdb + 6);
  }
}

}  // namespace

uint32_t allocation_length(const CommandInfo& info, ByteView view) {
  const uint8_t* cdb = view.data();
  switch (info.operation) {
    case Operation::kInquiry:
      return load_be16(cdb + 3);
    case Operation::kRequestSense:
      return cdb[4];
    case Operation::kModeSense:
    case Operation::kModeSelect:
      return info.cdb_length == 6 ? cdb[4] : load_be16(cdb + 7);
    case Operation::kLogSense:
    case Operation::kUnmap:
    case Operation::kPersistentReserveIn:
      return load_be16(cdb + 7);
    case Operation::kPersistentReserveOut:
      return load_be32(cdb + 5);
    case Operation::kReportLuns:
    case Operation::kReportTargetPortGroups:
    case Operation::kSetTargetPortGroups:
    case Operation::kReportSupportedOperationCodes:
    case Operation::kReportSupportedTaskManagementFunctions:
      return load_be32(cdb + 6);
    case Operation::kReadCapacity:  // READ CAPACITY(10) has none: always 8 bytes
      return info.cdb_length == 10 ? 0 : load_be32(cdb + 10);
    case Operation::kGetLbaStatus:
    case Operation::kExtendedCopy:
    case Operation::kReceiveCopyResults:
    case Operation::kPopulateToken:
    case Operation::kWriteUsingToken:
    case Operation::kReceiveRodTokenInformation:
      return load_be32(cdb + 10);
    case Operation::kPassThrough:
      return passed_length(cdb);
    default:
      return 0;
  }
}

}  // namespace sluice::scsi
