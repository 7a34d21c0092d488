#include "admin/lun_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "admin/table.h"

namespace sluice::admin {
namespace {

using nlohmann::ordered_json;

ordered_json latency(const lun::LatencySnapshot& snapshot) {
  const auto micros = [&](double q) { return static_cast<double>(snapshot.quantile(q)) / 1000; };
  return {{"count", snapshot.count},
          {"p50_microseconds", micros(0.5)},
          {"p99_microseconds", micros(0.99)},
          {"p999_microseconds", micros(0.999)}};
}

ordered_json to_json(const LunView& view) {
  ordered_json operations;
  for (size_t i = 0; i < lun::kActivities; ++i) {
    operations[std::string(name_of(static_cast<lun::Activity>(i)))] = view.figures.operations.at(i);
  }
  ordered_json failures;
  for (size_t i = 0; i < lun::kFailures; ++i) {
    failures[std::string(name_of(static_cast<lun::Failure>(i)))] = view.figures.failures.at(i);
  }
  return {{"target", view.target},
          {"lun", view.lun},
          {"uuid", view.uuid},
          {"product", view.product},
          {"size_bytes", view.size_bytes},
          {"block_size", view.block_size},
          {"read_only", view.read_only},
          {"write_cache", view.write_cache},
          {"state", view.state},
          {"reserved", view.reserved},
          {"nexuses", view.nexuses},
          {"in_flight", view.figures.in_flight},
          {"operations", operations},
          {"read_bytes", view.figures.read_bytes},
          {"written_bytes", view.figures.written_bytes},
          {"read_latency", latency(view.figures.read_latency)},
          {"write_latency", latency(view.figures.write_latency)},
          {"failures", failures}};
}

// "120us / 1.4ms"
std::string quantiles(const ordered_json& latency) {
  const auto text = [&](const char* key) {
    const auto micros = latency.at(key).get<double>();
    return micros < 1000 ? fmt::format("{:.0f}us", micros) : fmt::format("{:.1f}ms", micros / 1000);
  };
  if (latency.at("count") == 0) return "-";
  return text("p50_microseconds") + " / " + text("p99_microseconds");
}

std::string state_text(const ordered_json& view) {
  auto text = view.at("state").get<std::string>();
  if (view.at("read_only") == true) text += " read-only";
  if (view.at("reserved") == true) text += " reserved";
  return text;
}

std::string tables(const ordered_json& luns) {
  Table table({"TARGET", "LUN", "SIZE", "BLOCK", "CACHE", "STATE", "NEXUSES", "IN FLIGHT", "READS",
               "READ", "P50 / P99", "WRITES", "WRITTEN", "P50 / P99", "OTHERS", "FAILED"});
  for (const ordered_json& view : luns) {
    const auto count = [&](const char* key) { return view.at("operations").at(key).dump(); };
    uint64_t failed = 0;
    for (const auto& [name, value] : view.at("failures").items()) {
      // An attention is no failure to an operator: every login has one.
      if (name != "attention") failed += value.get<uint64_t>();
    }
    const ordered_json& operations = view.at("operations");
    const uint64_t others = operations.at("unmap").get<uint64_t>() +
                            operations.at("flush").get<uint64_t>() +
                            operations.at("other").get<uint64_t>();
    table.add(
        {view.at("target").get<std::string>(), view.at("lun").dump(),
         human_bytes(view.at("size_bytes")), view.at("block_size").dump(),
         view.at("write_cache") == true ? "on" : "off", state_text(view), view.at("nexuses").dump(),
         view.at("in_flight").dump(), count("read"), human_bytes(view.at("read_bytes")),
         quantiles(view.at("read_latency")), count("write"), human_bytes(view.at("written_bytes")),
         quantiles(view.at("write_latency")), std::to_string(others), std::to_string(failed)});
  }
  return table.text();
}

}  // namespace

std::string luns_json(const std::vector<LunView>& luns) {
  ordered_json list = ordered_json::array();
  for (const LunView& view : luns) list.push_back(to_json(view));
  return list.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

Result<std::string> luns_table(const std::string& json) {
  try {
    const ordered_json luns = ordered_json::parse(json);
    if (luns.empty()) return std::string("no LUNs\n");
    return tables(luns);
  } catch (const ordered_json::exception&) {
    return Error{"the gateway's list of LUNs makes no sense to this version"};
  }
}

}  // namespace sluice::admin
