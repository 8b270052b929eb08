// SPDX-License-Identifier: MIT
// The C API from C++: a translator that closes itself, n-best lists, word alignments.
//
//     c++ simple.cc -o simple $(pkg-config --cflags --libs dragoman)
#include <dragoman/dragoman.h>

#include <iostream>
#include <memory>

int main(int argc, char **argv)
{
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.beam = 4;
    settings.nbest = 2;
    settings.alignment = DGM_ALIGN_WORDS;

    dgm_error error;
    dgm_translator *opened = nullptr;
    if (dgm_open(&opened, argc > 1 ? argv[1] : nullptr, &settings, &error) != DGM_OK) {
        std::cerr << error.text << '\n';
        return 1;
    }
    const auto close = [](dgm_translator *t) { dgm_close(&t); };
    const std::unique_ptr<dgm_translator, decltype(close)> translator(opened, close);

    const char *text = "The house is small.";
    dgm_results *results = nullptr;
    if (dgm_translate(translator.get(), &text, 1, &results, &error) != DGM_OK) {
        std::cerr << error.text << '\n';
        return 1;
    }
    const dgm_result &line = *results->items[0];
    for (size_t k = 0; k < line.count; k++) {
        const dgm_translation &x = *line.translations[k];
        std::cout << x.text << " |||";
        for (size_t i = 0; i < x.link_count; i++)
            std::cout << ' ' << x.links[i].source << '-' << x.links[i].target;
        std::cout << '\n';
    }
    dgm_results_free(&results);
    return 0;
}
