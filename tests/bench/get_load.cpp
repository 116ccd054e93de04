// SPDX-License-Identifier: Apache-2.0
// get_load PORT CONNECTIONS REQUESTS TARGET...: that many keep-alive connections ask for the
// targets in turn, one request at a time each, and read whole answers. Prints "seconds requests
// bytes".
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

int connect_to(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = ::htons(port);
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    void* generic = &address;
    return ::connect(fd, static_cast<::sockaddr*>(generic), sizeof address) == 0 ? fd : -1;
}

/// Bytes of the body; -1 for anything but a whole answer with status 200.
long read_answer(int fd, std::vector<char>& buffer) {
    std::size_t have = 0;
    std::size_t head = std::string_view::npos;
    while (head == std::string_view::npos) {
        const auto n = ::recv(fd, buffer.data() + have, buffer.size() - have, 0);
        if (n <= 0) {
            return -1;
        }
        have += static_cast<std::size_t>(n);
        head = std::string_view{buffer.data(), have}.find("\r\n\r\n");
    }
    const std::string_view text{buffer.data(), head};
    const std::size_t at = text.find("Content-Length: ");
    if (!text.starts_with("HTTP/1.1 200") || at == std::string_view::npos) {
        return -1;
    }
    const long length = std::strtol(text.data() + at + 16, nullptr, 10);
    long left = length - static_cast<long>(have - head - 4);
    while (left > 0) {
        const auto n = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (n <= 0) {
            return -1;
        }
        left -= n;
    }
    return length;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fputs("usage: get_load PORT CONNECTIONS REQUESTS TARGET...\n", stderr);
        return 2;
    }
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
    const long wanted = std::atol(argv[3]);
    const std::vector<std::string> targets{argv + 4, argv + argc};
    std::atomic<long> next{0};
    std::atomic<long> bytes{0};
    std::atomic<bool> failed{false};
    const auto work = [&] {
        const int fd = connect_to(port);
        std::vector<char> buffer(1UL << 18U);
        for (long i = next++; fd >= 0 && i < wanted && !failed; i = next++) {
            const std::string request = "GET " +
                                        targets[static_cast<std::size_t>(i) % targets.size()] +
                                        " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
            const bool sent = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
                              static_cast<::ssize_t>(request.size());
            const long got = sent ? read_answer(fd, buffer) : -1;
            failed = failed || got < 0;
            bytes += got;
        }
        failed = failed || fd < 0;
        ::close(fd);
    };
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < std::atoi(argv[2]); ++i) {
        threads.emplace_back(work);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (failed) {
        std::fputs("an answer was not 200 or not whole\n", stderr);
        return 1;
    }
    std::printf("%.6f %ld %ld\n", took.count(), wanted, bytes.load());
    return 0;
}
