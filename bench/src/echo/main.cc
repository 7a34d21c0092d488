// bare-echo: the limit. Moves the bytes an iSCSI target would move, and does nothing else.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "echo/server.h"
#include "wire/tcp.h"

namespace {

volatile int g_stop = 0;
void on_signal(int) { g_stop = 1; }

}  // namespace

int main(int argc, char** argv) {
  using namespace sluice::bench;
  CLI::App app{"A bare io_uring program that moves bytes as an iSCSI target would (see README)"};
  std::string address = "127.0.0.1";
  uint16_t port = 13260;
  uint64_t memory = 0;
  std::string path;
  std::string congestion = "auto";
  std::string receive = "incremental";
  uint32_t buffers = 0;
  uint32_t buffer_size = 64u << 10;
  uint32_t spin_us = 0;
  bool plain_ring = false;
  app.add_option("--address", address, "IPv4 address to listen on");
  app.add_option("--port", port, "port to listen on");
  app.add_option("--memory", memory, "bytes of the memory store")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--file", path, "file of the file store");
  app.add_option("--congestion", congestion, "TCP congestion control; auto: cubic, else reno");
  app.add_option("--receive", receive, "how to receive")
      ->check(CLI::IsMember({"incremental", "provided", "plain"}));
  app.add_option("--buffers", buffers, "provided buffers, a power of two (default 8 or 16)");
  app.add_option("--buffer-size", buffer_size, "bytes of each provided buffer");
  app.add_option("--spin", spin_us, "microseconds to look for work before sleeping");
  app.add_flag("--plain-ring", plain_ring, "no SINGLE_ISSUER and DEFER_TASKRUN");
  CLI11_PARSE(app, argc, argv);

  RingOptions options;
  options.receive = receive == "incremental" ? Receive::kIncremental
                    : receive == "provided"  ? Receive::kProvided
                                             : Receive::kPlain;
  options.defer_taskrun = !plain_ring;
  options.buffer_size = buffer_size;
  options.buffers = buffers != 0 ? buffers : options.receive == Receive::kIncremental ? 8 : 16;
  if ((options.buffers & (options.buffers - 1)) != 0) die("--buffers must be a power of two");

  struct sigaction action{};
  action.sa_handler = on_signal;  // no SA_RESTART: the wait must return
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);

  const Stores stores(memory, path);
  Ring ring(options);
  std::string in_effect;
  const int listener = listen_on(address, port, congestion, &in_effect);
  const nlohmann::json line = {{"program", "bare-echo"},
                               {"port", port},
                               {"receive", name_of(ring.in_effect().receive)},
                               {"ring", ring.setup()},
                               {"spin_us", spin_us},
                               {"congestion", in_effect}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
  Server server(ring, stores, listener, spin_us);
  server.run(&g_stop);
  close(listener);
  return 0;
}
