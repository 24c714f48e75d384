// What peers in C++ have in common: the folder of a case, its answers, its repetitions (docs/peers.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace peer {

// The library cannot do what was asked for; says why.
struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// There are no factors of these values; says why.
struct Breakdown : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An array of NumPy, of 32 or 64 bit integers or of float64.
template <class T>
std::vector<T> read_npy(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    char start[8];
    file.read(start, 8);
    uint32_t length = 0;
    file.read(reinterpret_cast<char*>(&length), start[6] == 1 ? 2 : 4);
    std::string head(length, ' ');
    file.read(&head[0], length);
    const size_t count = std::strtoull(head.c_str() + head.find('(') + 1, nullptr, 10);
    std::vector<T> values(count);
    auto read = [&](auto kind) {
        std::vector<decltype(kind)> raw(count);
        file.read(reinterpret_cast<char*>(raw.data()), count * sizeof(kind));
        std::copy(raw.begin(), raw.end(), values.begin());
    };
    if (head.find("<f8") != std::string::npos) read(double());
    else if (head.find("<i4") != std::string::npos) read(int32_t());
    else read(int64_t());
    if (!file) throw std::runtime_error("cannot read " + path);
    return values;
}

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of an action.
inline double timed(const std::function<void()>& action) {
    const double start = now();
    action();
    return now() - start;
}

// Over ranks all but the first are silent, all take the decision of the first, and the answer has their number.
inline bool silent = false;
inline long ranks = 1;
inline std::function<bool(bool)> agreed = [](bool own) { return own; };

// A text of JSON.
inline std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
    return out + '"';
}

// A line of the answer, in the making.
class Line {
    std::string text;

    Line& add(const char* key, const std::string& value) {
        text += std::string(text.back() == '{' ? "" : ", ") + '"' + key + "\": " + value;
        return *this;
    }

public:
    explicit Line(const char* name) : text(std::string("{\"") + name + "\": {") {}

    Line& with(const char* key, const std::string& value) { return add(key, quoted(value)); }
    Line& with(const char* key, long value) { return add(key, std::to_string(value)); }
    Line& with(const char* key, double value) {
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.17g", value);
        return std::isfinite(value) ? add(key, digits) : *this;
    }
    void say() const {
        if (silent) return;
        std::printf("%s}}\n", text.c_str());
        std::fflush(stdout);
    }
};

// A case: its folder, its settings and its system.
struct Case {
    std::string folder;
    std::map<std::string, std::string> settings;
    std::vector<int> indptr, indices;
    std::vector<double> values, b;
    int n = 0;

    explicit Case(const std::string& folder) : folder(folder) {
        std::ifstream lines(folder + "/settings.txt");
        for (std::string line; std::getline(lines, line);) {
            const size_t end = line.find(' ');
            settings[line.substr(0, end)] = end == std::string::npos ? "" : line.substr(end + 1);
        }
        n = static_cast<int>(whole("n"));
        indptr = read_npy<int>(folder + "/indptr.npy");
        indices = read_npy<int>(folder + "/indices.npy");
        values = read_npy<double>(folder + "/values.npy");
        b = read_npy<double>(folder + "/b.npy");
    }

    const std::string& word(const std::string& key) const { return settings.at(key); }
    long whole(const std::string& key) const { return std::stol(word(key)); }
    double number(const std::string& key) const { return std::stod(word(key)); }

    // Whether to take another sample after these, in seconds.
    bool another(const std::vector<double>& samples) const { return agreed(wanted(samples)); }

    bool wanted(const std::vector<double>& samples) const {
        double spent = 0.0;
        for (double seconds : samples) spent += seconds;
        const long count = static_cast<long>(samples.size());
        if (count < whole("repeat.least")) return true;
        const bool few = count < whole("repeat.samples") || spent < number("repeat.seconds");
        return few && count < whole("repeat.most") && spent < number("repeat.budget");
    }

    // A part of a setup: the key of its seconds in the answer, or none where they do not count, and what it does.
    using Phase = std::pair<const char*, std::function<void()>>;

    // Sets up as often as samples are asked for; tells the seconds of each phase and the entries of the factors.
    void time_setups(const std::vector<Phase>& phases, const std::function<double()>& entries = [] { return 0.0; }) const {
        std::vector<double> samples;
        while (samples.empty() || another(samples)) {
            Line line("setup");
            samples.push_back(0.0);
            for (const Phase& phase : phases) {
                const double seconds = timed(phase.second);
                if (phase.first == nullptr) continue;
                samples.back() += seconds;
                line.with(phase.first, seconds);
            }
            const double stored = entries();
            if (stored > 0) line.with("factor-entries", static_cast<long>(stored));
            line.say();
        }
    }

    // Solves from zero as often as samples are asked for, the first time uncounted unless it is long.
    void time_solves(const std::function<void()>& solve) const {
        std::vector<double> samples;
        const double first = timed(solve);
        auto tell = [&](double seconds) {
            samples.push_back(seconds);
            Line("solve").with("seconds", seconds).say();
        };
        if (agreed(first > number("repeat.budget")) || whole("repeat.most") == 1) tell(first);
        while (samples.empty() || another(samples)) tell(timed(solve));
    }

    // Writes the solution and the last line.
    void end(const double* x, bool converged, long iterations, double residual) const {
        if (silent) return;
        std::string head = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + std::to_string(n) + ",), }";
        head.resize(117, ' ');
        head += '\n';
        std::ofstream file(folder + "/x.npy", std::ios::binary);
        file.write("\x93NUMPY\x01\x00\x76\x00", 10);
        file.write(head.data(), static_cast<std::streamsize>(head.size()));
        file.write(reinterpret_cast<const char*>(x), static_cast<std::streamsize>(sizeof(double)) * n);
        file.close();
        const std::string status = converged ? "converged" : "iteration-limit";
        Line("end").with("status", status).with("iterations", iterations).with("residual", residual).say();
    }
};

// Answers for a library of this version: `run` answers for a case but for the first line. `device` tells what it computes
// on, if not on the host, or throws `Unsupported`.
inline int main(int count, char** arguments, const std::string& version, void (*run)(const Case&), long threads = 1,
                std::string (*device)() = nullptr) {
    Line hello("hello");
    hello.with("protocol", 1L).with("version", version).with("threads", threads);
    if (ranks > 1) hello.with("ranks", ranks);
    const std::string last = arguments[count - 1];
    auto ended = [](const char* status, const char* why) {
        Line("end").with("status", std::string(status)).with("reason", std::string(why)).say();
    };
    try {
        if (device != nullptr) hello.with("device", device());
    } catch (const Unsupported& why) {
        hello.say();
        if (last != "--version") return ended("unsupported", why.what()), 0;
        std::fprintf(stderr, "%s\n", why.what());
        return 1;
    }
    hello.say();
    if (last == "--version") return 0;
    try {
        run(Case(last));
    } catch (const Unsupported& why) {
        ended("unsupported", why.what());
    } catch (const Breakdown& why) {
        ended("breakdown", why.what());
    } catch (const std::bad_alloc&) {
        ended("out-of-memory", "an allocation failed");
    } catch (const std::exception& why) {
        ended("failed", why.what());
    }
    return 0;
}

}  // namespace peer
