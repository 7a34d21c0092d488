// Whatever room an answer gets, it is a prefix of the whole answer and nothing behind it is
// touched; whatever bytes a parser gets, it reads none beyond them (run under ASan).
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "scsi/capacity.h"
#include "scsi/cdb.h"
#include "scsi/expected_bytes.h"
#include "scsi/inquiry.h"
#include "scsi/lba_status.h"
#include "scsi/log_pages.h"
#include "scsi/mode_pages.h"
#include "scsi/port_groups.h"
#include "scsi/pr_in.h"
#include "scsi/receive_copy.h"
#include "scsi/report_luns.h"
#include "scsi/report_opcodes.h"
#include "scsi/request_sense.h"
#include "scsi/token_list.h"
#include "scsi/unmap_list.h"
#include "scsi/xcopy_list.h"

namespace sluice::scsi {
namespace {

using Builder = std::function<size_t(MutableBytes)>;

size_t value_of(const Outcome<size_t>& outcome) {
  EXPECT_TRUE(outcome.ok());
  return outcome ? *outcome : 0;
}

void add_inquiry(std::map<std::string, Builder>& all) {
  static InquiryUnit unit;
  unit.identity.serial = "SERIAL";
  unit.port.target_name = "iqn.2026-11.dev.sluice:t";
  all["standard"] = [](MutableBytes out) { return build_standard_inquiry(unit, out); };
  for (const uint8_t page : {0x00, 0x80, 0x83, 0x86, 0x8f, 0xb0, 0xb1, 0xb2}) {
    all["vpd " + std::to_string(page)] = [page](MutableBytes out) {
      size_t size = 0;
      EXPECT_TRUE(build_vpd_page(page, unit, out, &size));
      return size;
    };
  }
}

void add_reports(std::map<std::string, Builder>& all) {
  all["luns"] = [](MutableBytes out) {
    const uint64_t numbers[] = {0, 1, 300};
    return value_of(build_report_luns(hex("a0 00 02 00 00 00 00 00 ff ff"), numbers, out));
  };
  all["opcodes"] = [](MutableBytes out) {
    return value_of(build_report_opcodes(hex("a3 0c 80 00 00 00 00 00 ff ff"), {}, out));
  };
  all["one opcode"] = [](MutableBytes out) {
    return value_of(build_report_opcodes(hex("a3 0c 81 28 00 00 00 00 ff ff"), {}, out));
  };
  all["tmf"] = [](MutableBytes out) {
    return build_report_task_management(hex("a3 0d 80 00 00 00 00 00 ff ff"), {}, out);
  };
  all["port groups"] = [](MutableBytes out) {
    const uint16_t ports[] = {1, 2};
    const PortGroup groups[] = {{.relative_ports = ports}};
    return value_of(build_report_port_groups(hex("a3 2a 00*8"), groups, 1, out));
  };
  all["capacity 10"] = [](MutableBytes out) { return build_read_capacity_10({.blocks = 9}, out); };
  all["capacity 16"] = [](MutableBytes out) {
    return build_read_capacity_16({.blocks = 9}, {}, out);
  };
  all["lba status"] = [](MutableBytes out) {
    const LbaStatus extents[] = {{.lba = 1, .blocks = 2}, {.lba = 3, .blocks = 4}};
    return build_lba_status(extents, out);
  };
  all["mode 6"] = [](MutableBytes out) {
    return value_of(build_mode_sense(hex("1a 00 3f ff ff 00"), {}, out));
  };
  all["mode 10"] = [](MutableBytes out) {
    return value_of(build_mode_sense(hex("5a 10 3f ff 00 00 00 01 00 00"), {}, out));
  };
  all["log"] = [](MutableBytes out) {
    const LogUnit unit{.has_provisioning = true, .available_bytes = 1, .used_bytes = 2};
    return value_of(build_log_sense(hex("4d 00 4c 00 00 00 00 00 ff 00"), unit, out));
  };
}

void add_reservations_and_copies(std::map<std::string, Builder>& all) {
  all["keys"] = [](MutableBytes out) {
    const uint64_t keys[] = {1, 2, 3};
    return build_pr_read_keys(1, keys, out);
  };
  all["reservation"] = [](MutableBytes out) {
    return build_pr_read_reservation(1, PrType::kWriteExclusive, 2, out);
  };
  all["pr capabilities"] = [](MutableBytes out) { return build_pr_report_capabilities({}, out); };
  all["full status"] = [](MutableBytes out) {
    const PrRegistration registrations[] = {{.initiator_name = "iqn.a"},
                                            {.initiator_name = "iqn.b"}};
    return build_pr_read_full_status(1, registrations, out);
  };
  all["operating parameters"] = [](MutableBytes out) {
    return build_operating_parameters({}, out);
  };
  all["copy status"] = [](MutableBytes out) { return build_copy_status({}, out); };
  all["failed segment"] = [](MutableBytes out) {
    return build_failed_segment_details(
        {.state = CopyState::kCompletedWithErrors, .status = Status::kCheckCondition}, true, out);
  };
  all["token information"] = [](MutableBytes out) {
    static const RodTokenBytes token{};
    return build_rod_token_information({.populate = true, .token = &token}, true, out);
  };
  all["sense"] = [](MutableBytes out) {
    return build_request_sense(hex("03 01 00 00 ff 00"), Sense::invalid_field_in_cdb(1), out);
  };
}

TEST(Truncation, EveryResponseIsTruncatedToItsBufferWithoutOverrun) {
  std::map<std::string, Builder> all;
  add_inquiry(all);
  add_reports(all);
  add_reservations_and_copies(all);
  for (const auto& [name, build] : all) {
    const auto whole = built(build);
    ASSERT_GT(whole.size(), 0u) << name;
    for (size_t room = 0; room <= whole.size() + 3; ++room) {
      const auto heap = std::make_unique<uint8_t[]>(room);  // ASan guards its end
      const size_t size = build({heap.get(), room});
      ASSERT_EQ(size, std::min(room, whole.size())) << name;
      ASSERT_TRUE(
          std::equal(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size), heap.get()))
          << name << " cut to " << room;
    }
  }
}

// Bytes in a block of exactly their size.
struct Exact {
  explicit Exact(const std::vector<uint8_t>& bytes)
      : heap(std::make_unique<uint8_t[]>(bytes.size())), size(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), heap.get());
  }
  ByteView view() const { return {heap.get(), size}; }
  std::unique_ptr<uint8_t[]> heap;
  size_t size;
};

// Runs the parser a CDB leads to, walking all it finds.
void parse(const CommandInfo& info, ByteView cdb, ByteView data) {
  switch (info.operation) {
    case Operation::kUnmap:
      if (auto l = parse_unmap(
              cdb, {.blocks = 1u << 20, .max_descriptors = 64, .max_blocks = 1u << 20}, data)) {
        for (size_t i = 0; i < l->size(); ++i) (void)l->at(i);
      }
      break;
    case Operation::kPersistentReserveOut:
      if (auto r = parse_pr_out(cdb, data)) {
        TransportId id;
        for (size_t at = 0; r->transport_ids.next(&at, &id);) ASSERT_FALSE(id.name.empty());
      }
      break;
    case Operation::kExtendedCopy:
      if (auto l = parse_xcopy(cdb, {}, data)) {
        for (size_t i = 0; i < l->cscd_count(); ++i) (void)designates(l->cscd(i).designator, {});
        for (size_t i = 0; i < l->segment_count(); ++i) (void)l->segment(i);
      }
      break;
    case Operation::kPopulateToken:
      if (auto r = parse_populate_token(cdb, {.blocks = 1u << 20, .max_ranges = 8}, data)) {
        (void)r->ranges.total_blocks();
      }
      break;
    case Operation::kWriteUsingToken:
      if (auto r = parse_write_using_token(cdb, {.blocks = 1u << 20, .max_ranges = 8}, data)) {
        (void)r->ranges.total_blocks();
        RodToken token;
        (void)parse_rod_token(r->token, &token);
      }
      break;
    case Operation::kModeSelect:
      (void)parse_mode_select(cdb, {}, data).ok();
      break;
    default:
      break;
  }
}

TEST(Truncation, NoParserReadsBeyondItsData) {
  std::mt19937 random(20261121);
  const std::vector<std::vector<uint8_t>> seeds = {
      hex("00 26 00 20 00*4 00*7 10 00*3 20 00*4 00*16"),
      hex("00*20 08 00*3 00 00 00 20 45 00 00 1c") + ascii("iqn.x:host,i,0x00023d000001") +
          hex("00"),
      hex("00*17 01 00 01 00 00 00 20 45 00 00 1c") + ascii("iqn.x:host,i,0x00023d000001") +
          hex("00"),
      hex("01 00 00 20 00*4 00 00 00 1c 00*4 e4 00*6 08 00*24 02 00 00 18 00*24"),
      hex("00 1e 00*12 00 10 00*16"),
      hex("02 26 00*532 00 10 00*16"),
      hex("00*4 08 12 04 00*17 0a 0a 20 10 00 40 00 00 ff ff 00 00"),
      hex("00*6 00 08 00*8 4a 01 00 1c 01 00*27"),
  };
  for (int round = 0; round < 40000; ++round) {
    auto bytes = seeds[random() % seeds.size()];
    for (unsigned flips = random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 2 == 0) bytes.resize(random() % (bytes.size() + 1));
    const auto table = command_table();
    const CommandInfo& info = table[random() % table.size()];
    std::vector<uint8_t> cdb(info.usage, info.usage + info.cdb_length);
    const auto length = static_cast<uint32_t>(random() % 8 == 0 ? random() % 700 : bytes.size());
    if (info.operation == Operation::kModeSelect && info.cdb_length == 6) {
      cdb[4] = static_cast<uint8_t>(length);
    } else if (info.operation == Operation::kModeSelect || info.operation == Operation::kUnmap) {
      store_be16(&cdb[7], static_cast<uint16_t>(length));
    } else if (info.operation == Operation::kPersistentReserveOut) {
      store_be32(&cdb[5], length);
    } else if (info.cdb_length == 16) {
      store_be32(&cdb[10], length);
    }
    parse(info, Exact(cdb).view(), Exact(bytes).view());
  }
}

TEST(Truncation, NoCdbIsReadBeyondItsLength) {
  std::mt19937 random(1);
  for (int round = 0; round < 200000; ++round) {
    std::vector<uint8_t> bytes(1 + random() % 16);
    for (auto& b : bytes) b = static_cast<uint8_t>(random() % 4 == 0 ? random() : 0);
    bytes[0] = static_cast<uint8_t>(random());
    const Exact cdb(bytes);
    Sense sense;
    const CommandInfo* info = find_command(cdb.view(), Support{}, &sense);
    if (info == nullptr) {
      ASSERT_EQ(sense.key, SenseKey::kIllegalRequest);
      continue;
    }
    (void)decode_block_range(*info, cdb.view());
    (void)allocation_length(*info, cdb.view());
    (void)flags_of(*info, cdb.view());
  }
}

}  // namespace
}  // namespace sluice::scsi
