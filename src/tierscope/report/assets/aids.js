'use strict';

// What helps with reading, whatever the page is about: tips for fingers, hints beside tables that go on, the glossary, and printing.

const aids = (() => {
  const byId = (id) => document.getElementById(id);

  // ---- tips: what a mouse sees when it rests on a mark, a finger sees when it taps ----

  function tipOf(element) {
    for (let one = element; one && one !== document.body; one = one.parentElement) {
      if (one.matches('.cell')) return ''; // has a line of its own
      const title = [...one.children].find((child) => child.localName === 'title');
      if (title && one.localName !== 'svg') return title.textContent;
      if (one.hasAttribute('title')) return one.getAttribute('title');
    }
    return '';
  }

  function hideTip() {
    byId('tip').hidden = true;
  }

  function showTip(text, x, y) {
    const tip = byId('tip');
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(x - box.width / 2, room - box.width - 8))}px`;
    tip.style.top = `${y - box.height - 14 > 0 ? y - box.height - 14 : y + 18}px`;
  }

  function listenForTips() {
    document.addEventListener('click', (event) => {
      const text = event.target instanceof Element ? tipOf(event.target) : '';
      if (text) showTip(text, event.clientX, event.clientY);
      else hideTip();
    });
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') hideTip();
    });
    document.addEventListener('scroll', hideTip, { passive: true, capture: true });
    // Badges that explain themselves can be reached with a keyboard too.
    for (const one of document.querySelectorAll('[title][tabindex]')) {
      one.addEventListener('focus', () => {
        const box = one.getBoundingClientRect();
        showTip(one.getAttribute('title'), box.left + box.width / 2, box.top);
      });
      one.addEventListener('blur', hideTip);
    }
  }

  // ---- boxes that go on sideways ----

  function showMore(box) {
    const left = box.scrollLeft > 2;
    const right = box.scrollLeft + box.clientWidth < box.scrollWidth - 2;
    box.classList.toggle('more-left', left);
    box.classList.toggle('more-right', right);
    const hint = box.nextElementSibling;
    if (hint?.classList.contains('scroll-hint')) hint.hidden = !(left || right);
  }

  const boxes = () => [...document.querySelectorAll('.scroll, pre')];
  const showAllMore = () => boxes().forEach(showMore);

  function listenForScrolling() {
    for (const box of boxes()) {
      const hint = document.createElement('p');
      hint.className = 'scroll-hint screen';
      hint.textContent = '← scroll sideways for more →';
      hint.hidden = true;
      box.after(hint);
      box.addEventListener('scroll', () => showMore(box), { passive: true });
    }
    window.addEventListener('resize', showAllMore);
    for (const one of document.querySelectorAll('details')) one.addEventListener('toggle', showAllMore);
    showAllMore();
  }

  // ---- the glossary and the printer ----

  function listenForGlossary() {
    const glossary = byId('glossary');
    byId('open-glossary').hidden = false;
    byId('open-glossary').addEventListener('click', () => glossary.showModal());
    byId('close-glossary').addEventListener('click', () => glossary.close());
    glossary.addEventListener('click', (event) => {
      if (event.target === glossary) glossary.close(); // beside it
    });
  }

  function listenForPrinting() {
    byId('tools').hidden = false;
    byId('print').addEventListener('click', () => window.print());
    window.addEventListener('beforeprint', hideTip);
  }

  function listen() {
    listenForTips();
    listenForScrolling();
    listenForGlossary();
    listenForPrinting();
  }

  return { listen, showAllMore };
})();
