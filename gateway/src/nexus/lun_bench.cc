// Measures a command between begin() and complete(), without sockets. Built with SLUICE_BENCH.
#include <benchmark/benchmark.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "nexus/exports.h"
#include "nexus/nexus.h"
#include "unit/latency_log.h"
#include "unit/ranges/range_table.h"
#include "unit/reservations/reservations.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

class BenchReactors : public Reactors {
 public:
  explicit BenchReactors(unsigned count) : count_(count) {}
  unsigned count() const override { return count_; }
  unsigned current() const override { return 0; }
  void post(unsigned, std::function<void()> task) override { queue_.push_back(std::move(task)); }
  void run() {
    while (!queue_.empty()) {
      auto task = std::move(queue_.front());
      queue_.pop_front();
      task();
    }
  }

 private:
  unsigned count_;
  std::deque<std::function<void()>> queue_;
};

class BenchAio : public Aio {
 public:
  void submit(AioOp&) override { std::abort(); }
};

struct LunBench {
  LunBench(const char* kind, unsigned reactor_count) : reactors(reactor_count) {
    backend::Spec spec;
    spec.kind = kind;
    spec.size = uint64_t{1} << 30;
    UnitIdentity identity;
    identity.uuid[0] = 1;
    unit = std::make_shared<Unit>(identity, backend::open(spec).value(), reactor_count, nullptr);
    target = std::make_shared<Target>("iqn.2026-11.dev.sluice:bench", "", 1);
    target->set_luns({{0, unit}}, reactors);
    nexus = Nexus::open(target, {"iqn.2026-11.bench:host"},
                        {&aio, &pool, &reactors, 0, &now, &latencies});
    UnitAttention ua;
    while (unit->attached().pop(*nexus->use(0), &ua)) {
    }
  }
  ~LunBench() {
    nexus->close(false, [] {});
    reactors.run();
  }

  // A batch is 32 commands.
  void end_batch(uint32_t lba) {
    if (lba % 256 == 0) latencies.settle(now);
  }

  BenchAio aio;
  BufferPool pool{size_t{64} << 20};
  BenchReactors reactors;
  Nanos now = 0;
  LatencyLog latencies;
  std::shared_ptr<Unit> unit;
  std::shared_ptr<Target> target;
  std::shared_ptr<Nexus> nexus;
};

void set_cdb(Command& command, uint8_t opcode, uint32_t lba, uint16_t blocks) {
  command.cdb = {opcode};
  store_be32(command.cdb.data() + 2, lba);
  store_be16(command.cdb.data() + 7, blocks);
  command.expected_data_in = command.expected_data_out = blocks * 512u;
  command.complete = [](Command&) {};
}

void read_4k_in(benchmark::State& state, LunBench& bench) {
  std::vector<Command> commands(32);
  uint32_t lba = 0;
  for (auto _ : state) {
    Command& command = commands[lba / 8 % commands.size()];
    set_cdb(command, 0x28, lba, 8);
    bench.nexus->begin(command);
    benchmark::DoNotOptimize(command.data_in.data());
    lba = (lba + 8) % 100000;
    bench.end_batch(lba);
  }
}

void read_4k(benchmark::State& state, const char* kind, unsigned reactors) {
  LunBench bench(kind, reactors);
  read_4k_in(state, bench);
}

// The nexus is a registrant of a Write Exclusive - Registrants Only reservation that another nexus
// holds.
void read_4k_registrant(benchmark::State& state, const char* kind, unsigned reactors) {
  LunBench bench(kind, reactors);
  NexusId other = bench.nexus->id();
  other.initiator_name += "2";
  ReservationState reservation;
  reservation.type = ReservationType::kWriteExclusiveRegistrantsOnly;
  reservation.holder = other;
  reservation.registrations = {{other, 2, false, {}}, {bench.nexus->id(), 1, false, {}}};
  {
    const std::lock_guard lock(bench.unit->mutex());
    bench.unit->reservations().replace(reservation);
    bench.unit->reservations_changed();
  }
  read_4k_in(state, bench);
}

void write_4k(benchmark::State& state, const char* kind, unsigned reactors) {
  LunBench bench(kind, reactors);
  std::vector<Command> commands(32);
  std::vector<uint8_t> data(4096);
  uint32_t lba = 0;
  for (auto _ : state) {
    Command& command = commands[lba / 8 % commands.size()];
    set_cdb(command, 0x2a, lba, 8);
    bench.nexus->begin(command);
    command.data_out.clear();
    command.data_out.push_back({BufferRef(), data.data(), 4096});
    command.data_out_size = 4096;
    bench.nexus->data_ready(command);
    lba = (lba + 8) % 100000;
    bench.end_batch(lba);
  }
}

void test_unit_ready(benchmark::State& state) {
  LunBench bench("null", 1);
  Command command;
  command.complete = [](Command&) {};
  uint32_t count = 0;
  for (auto _ : state) {
    bench.nexus->begin(command);
    bench.end_batch(count += 8);
  }
}

// Acquires and releases a 4k range while 32 others are held.
void hold(benchmark::State& state, bool exclusive, unsigned shards) {
  BenchReactors reactors(shards);
  auto table = std::make_shared<RangeTable>(shards);
  std::vector<RangeHold> held(32);
  uint64_t at = 0;
  const auto set = [&](RangeHold& h) {
    h.first = at * 8;
    h.last = h.first + 7;
    h.exclusive = exclusive;
    at = (at * 1103515245 + 12345) % (1u << 24);
  };
  for (auto& h : held) {
    set(h);
    table->acquire(0, h, &reactors);
  }
  size_t i = 0;
  for (auto _ : state) {
    RangeHold& h = held[i++ % held.size()];
    table->release(0, h, &reactors);
    set(h);
    benchmark::DoNotOptimize(table->acquire(0, h, &reactors));
  }
}

BENCHMARK_CAPTURE(read_4k, null, "null", 1);
BENCHMARK_CAPTURE(read_4k, null_2_reactors, "null", 2);
BENCHMARK_CAPTURE(read_4k, memory, "memory", 1);
BENCHMARK_CAPTURE(read_4k_registrant, null, "null", 1);
BENCHMARK_CAPTURE(read_4k_registrant, null_2_reactors, "null", 2);
BENCHMARK_CAPTURE(write_4k, null, "null", 1);
BENCHMARK_CAPTURE(write_4k, null_2_reactors, "null", 2);
BENCHMARK_CAPTURE(write_4k, memory, "memory", 1);
BENCHMARK(test_unit_ready);
BENCHMARK_CAPTURE(hold, shared, false, 1);
BENCHMARK_CAPTURE(hold, exclusive, true, 1);
BENCHMARK_CAPTURE(hold, shared_2_reactors, false, 2);
BENCHMARK_CAPTURE(hold, exclusive_2_reactors, true, 2);

}  // namespace
}  // namespace sluice::lun

BENCHMARK_MAIN();
