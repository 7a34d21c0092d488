// iscsi-load: a load client that costs as little as it can, and checks data when asked to.
#include <CLI/CLI.hpp>
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "load/bare_dialect.h"
#include "load/iscsi_dialect.h"
#include "load/load.h"
#include "wire/tcp.h"

namespace sluice::bench {
namespace {

using nlohmann::json;

struct Options {
  std::string address = "127.0.0.1";
  uint16_t port = 3260;
  std::string protocol = "iscsi";
  std::string congestion = "auto";
  std::string store = "null";
  uint64_t lun = 0;
  uint32_t luns = 1;
  std::string op = "read";
  uint32_t write_percent = 50;
  std::string pattern = "random";
  std::string wait = "poll";
  bool digests = false;
  DigestChoice digest;
  bool fill = true;
  uint64_t span = 0;
  IscsiOffer offer;
  Workload workload;
  LoadOptions load;
};

void add_options(CLI::App& app, Options& o) {
  const CLI::AsSizeValue size(false);
  app.add_option("--address", o.address, "IPv4 address of the target");
  app.add_option("--port", o.port, "its port");
  app.add_option("--protocol", o.protocol)->check(CLI::IsMember({"iscsi", "bare"}));
  app.add_option("--congestion", o.congestion, "TCP congestion control; auto: cubic, else reno");
  app.add_option("--store", o.store, "bare: which store")
      ->check(CLI::IsMember({"null", "memory", "file"}));
  app.add_option("--target", o.offer.target, "iscsi: target name");
  app.add_option("--initiator", o.offer.initiator, "iscsi: initiator name");
  app.add_option("--lun", o.lun, "iscsi: logical unit number")->check(CLI::Range(0, 255));
  app.add_option("--luns", o.luns, "iscsi: so many from --lun on, each session uses all")
      ->check(CLI::Range(1, 256));
  app.add_option("--op", o.op)->check(CLI::IsMember({"read", "write", "mix"}));
  app.add_option("--write-percent", o.write_percent, "share of writes in mix")
      ->check(CLI::Range(0, 100));
  app.add_option("--size", o.workload.size, "bytes per command")->transform(size);
  app.add_option("--depth", o.workload.depth, "commands in flight per session")
      ->check(CLI::Range(1, 256));
  app.add_option("--sessions", o.workload.sessions)->check(CLI::Range(1, 1024));
  app.add_option("--pattern", o.pattern)->check(CLI::IsMember({"random", "sequential"}));
  app.add_option("--span", o.span, "bytes of the LUN to use (default: all, at most 1 GiB)")
      ->transform(size);
  app.add_option("--seed", o.workload.seed, "of offsets and of the pattern written");
  app.add_flag("--verify", o.workload.verify, "fill the span with a pattern, check every read");
  app.add_flag("--fill,!--no-fill", o.fill, "verify: no-fill trusts an earlier run's contents");
  app.add_flag("--discard", o.workload.discard, "don't copy large payloads out of the socket");
  app.add_flag("--digests", o.digests, "CRC32C over headers and data");
  app.add_flag("--header-digest", o.digest.header, "CRC32C over headers");
  app.add_flag("--data-digest", o.digest.data, "CRC32C over data");
  app.add_flag("--initial-r2t,!--no-initial-r2t", o.offer.initial_r2t);
  app.add_flag("--immediate,!--no-immediate", o.offer.immediate_data);
  app.add_option("--segment", o.offer.segment, "MaxRecvDataSegmentLength")->transform(size);
  app.add_option("--max-burst", o.offer.max_burst)->transform(size);
  app.add_option("--first-burst", o.offer.first_burst)->transform(size);
  app.add_option("--max-r2t", o.offer.max_r2t, "MaxOutstandingR2T");
  app.add_option("--warmup", o.load.warmup_s, "seconds before the window");
  app.add_option("--seconds", o.load.seconds, "seconds of the window");
  app.add_option("--wait", o.wait, "how to wait for answers: poll and receive never sleep")
      ->check(CLI::IsMember({"poll", "receive", "sleep"}));
  app.add_option("--watch-pid", o.load.watch_pids, "processes whose CPU use to report, together")
      ->delimiter(',');
  app.add_option("--watch-core", o.load.watch_core, "core whose use to report");
}

// Sets what follows from the options together; `capacity` in bytes, 0 if unknown.
void settle_span(Options& o, uint64_t capacity) {
  constexpr uint64_t kDefaultSpan = 1ull << 30;
  uint64_t span = o.span;
  if (span == 0) span = capacity == 0 ? kDefaultSpan : std::min(capacity, kDefaultSpan);
  if (capacity != 0 && span > capacity) die("--span is larger than the LUN");
  if (span / o.workload.size < o.workload.sessions) die("--span is too small");
  o.workload.span = span;
}

std::unique_ptr<Dialect> open_bare(const Options& o, int fd) {
  const bare::Store store = o.store == "null"     ? bare::Store::kNull
                            : o.store == "memory" ? bare::Store::kMemory
                                                  : bare::Store::kFile;
  return std::make_unique<BareDialect>(fd, store, o.digest);
}

struct Agreed {
  json parameters = json::object();
  json session = json::object();
};

// The smallest of the LUNs' capacities; none may differ in its block size.
IscsiLink::Capacity capacity_of(IscsiLink& link, const std::vector<uint64_t>& luns) {
  IscsiLink::Capacity common = link.capacity(luns[0]);
  for (size_t i = 1; i < luns.size(); ++i) {
    const IscsiLink::Capacity one = link.capacity(luns[i]);
    if (one.block_size != common.block_size) die("the LUNs differ in block size");
    common.blocks = std::min(common.blocks, one.blocks);
  }
  return common;
}

std::unique_ptr<Dialect> open_iscsi(Options& o, int fd, uint32_t session, Agreed* agreed) {
  auto link = std::make_unique<IscsiLink>(fd, o.offer, session);
  std::vector<uint64_t> luns;
  for (uint64_t lun = o.lun; lun < o.lun + o.luns; ++lun) {
    luns.push_back(lun << 48);  // peripheral device addressing (SAM-5 §4.7.7.2)
  }
  const IscsiLink::Capacity capacity = capacity_of(*link, luns);
  if (!std::has_single_bit(capacity.block_size)) die("odd block size");
  if (o.workload.size % capacity.block_size != 0) die("--size isn't a multiple of the block size");
  if (session == 0) settle_span(o, capacity.blocks * capacity.block_size);
  const IscsiParameters& p = link->parameters();
  agreed->session = link->session();
  agreed->parameters = {{"header_digest", p.header_digest},   {"data_digest", p.data_digest},
                        {"initial_r2t", p.initial_r2t},       {"immediate_data", p.immediate_data},
                        {"target_segment", p.target_segment}, {"max_burst", p.max_burst},
                        {"first_burst", p.first_burst},       {"block_size", capacity.block_size}};
  const IscsiState state = link->state();
  return std::make_unique<IscsiDialect>(state, std::move(link), std::move(luns),
                                        capacity.block_size, o.workload.depth, !o.workload.verify);
}

json report(const Options& o, const LoadResult& r, const CpuWatch& watch) {
  const Tally& t = r.tally;
  const auto ops = static_cast<double>(t.reads + t.writes);
  const auto us = [](double ns) { return ns / 1000; };
  json out = {{"program", "iscsi-load"},
              {"protocol", o.protocol},
              {"op", o.op},
              {"pattern", o.pattern},
              {"size", o.workload.size},
              {"depth", o.workload.depth},
              {"sessions", o.workload.sessions},
              {"luns", o.luns},
              {"header_digest", o.digest.header},
              {"data_digest", o.digest.data},
              {"digests", o.digest.header && o.digest.data},
              {"span", o.workload.span},
              {"wait", o.wait},
              {"seconds", r.seconds},
              {"commands", t.reads + t.writes},
              {"reads", t.reads},
              {"writes", t.writes},
              {"iops", ops / r.seconds},
              {"mb_per_s", ops * o.workload.size / r.seconds / 1e6},
              {"latency_us",
               {{"mean", us(t.latency.mean())},
                {"p50", us(t.latency.percentile(0.5))},
                {"p99", us(t.latency.percentile(0.99))},
                {"p999", us(t.latency.percentile(0.999))},
                {"max", us(static_cast<double>(t.latency.max()))}}},
              {"commands_per_receive", t.receives == 0 ? 0 : ops / static_cast<double>(t.receives)},
              {"client_busy", r.busy},
              {"client_cpu", r.own_cpu},
              {"client_wait", r.own_wait},
              {"errors", r.errors},
              {"unit_attentions", t.attentions},
              {"mismatches", r.mismatches},
              {"filled", r.filled},
              {"first_error", t.first_error}};
  if (watch.watching()) {
    const CpuUse& use = watch.processes();
    const double ns = r.seconds * 1e9;
    out["target_cpu_us"] = ops == 0 ? 0 : us(static_cast<double>(use.run_ns)) / ops;
    out["target_cpu"] = static_cast<double>(use.run_ns) / ns;
    out["target_cpu_stat"] = static_cast<double>(use.stat_ns) / ns;
    out["target_wait"] = static_cast<double>(use.wait_ns) / ns;
    out["target_slices"] = use.slices;
    if (o.load.watch_core >= 0) {
      const CoreUse& core = watch.core();
      out["core_busy"] = static_cast<double>(core.busy_ns) / ns;
      out["core_softirq"] = static_cast<double>(core.softirq_ns) / ns;
      out["core_steal"] = static_cast<double>(core.steal_ns) / ns;
    }
  }
  return out;
}

int run(Options& o) {
  Workload& w = o.workload;
  w.random = o.pattern == "random";
  w.write_percent = o.op == "write" ? 100 : o.op == "mix" ? o.write_percent : 0;
  if (o.digests) o.digest = {.header = true, .data = true};
  o.offer.header_digest = o.digest.header;
  o.offer.data_digest = o.digest.data;
  o.load.wait = o.wait == "poll"      ? Wait::kPoll
                : o.wait == "receive" ? Wait::kReceive
                                      : Wait::kSleep;
  const bool bare = o.protocol == "bare";
  if (!bare && o.offer.target.empty()) die("--target is needed");
  if (o.lun + o.luns > 256) die("--lun and --luns: the last LUN is 255");
  if (o.luns > 1 && w.verify) die("--verify knows one LUN only");
  if (w.verify && bare && o.store == "null") die("a null store keeps nothing to verify");
  constexpr uint32_t kMaxCommand = 16u << 20;  // bytes; a target's MaxBurstLength may be less
  const uint32_t most = bare ? bare::kMaxPayload : kMaxCommand;
  if (w.size == 0 || w.size > most || w.size % 4 != 0) die("bad --size");
  if (bare) settle_span(o, 0);

  std::vector<uint8_t> shared(w.size);
  std::mt19937 random(1);
  for (uint8_t& byte : shared) byte = static_cast<uint8_t>(random());
  std::string congestion;
  Agreed agreed;
  std::vector<std::unique_ptr<Session>> sessions;
  for (uint32_t i = 0; i < w.sessions; ++i) {
    const int fd = connect_to(o.address, o.port, o.congestion, &congestion);
    auto dialect = bare ? open_bare(o, fd) : open_iscsi(o, fd, i, &agreed);
    sessions.push_back(std::make_unique<Session>(fd, std::move(dialect), w, i, shared.data()));
  }
  Load load(std::move(sessions), o.load);
  const LoadResult result = load.run(w.verify && o.fill);
  json line = report(o, result, load.watch());
  line["congestion"] = congestion;
  line["agreed"] = agreed.parameters;
  line["session"] = agreed.session;
  std::printf("%s\n", line.dump().c_str());
  return result.errors == 0 ? 0 : 2;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Load for an iSCSI target or for bare-echo; prints one JSON object"};
  sluice::bench::Options options;
  sluice::bench::add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  return sluice::bench::run(options);
}
